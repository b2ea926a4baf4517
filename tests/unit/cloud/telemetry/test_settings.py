from typing import Any

import pytest

from cloud.settings import SettingsInvalid, load_settings


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"otlp_insecure": True}, "otlp_endpoint"),
        ({"otlp_endpoint": "collector.example:4317", "otlp_insecure": True}, "loopback"),
        ({"otlp_endpoint": "127.0.0.1:4317", "otlp_insecure": True, "otlp_ca": "ca.pem"}, "otlp_ca"),
        ({"otlp_endpoint": "nowhere"}, "HOST:PORT"),
        ({"metrics_listen": "9464"}, "HOST:PORT"),
    ],
)
def test_settings_that_would_send_traces_in_clear_or_nowhere_are_refused(flags: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsInvalid, match=says):
        load_settings(flags=flags, environment={})


def test_nothing_is_told_to_anybody_by_default() -> None:
    settings = load_settings(flags={}, environment={}).settings
    assert (settings.otlp_endpoint, settings.traces_file, settings.metrics_listen) == ("", None, "")
