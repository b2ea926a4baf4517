"""The connected devices: what they saw becomes tasks, and steps of tasks go down to them and come back."""

from cloud.devices.hub import DeviceCannot, DeviceHub

__all__ = ["DeviceCannot", "DeviceHub"]
