"""A small vocabulary of a sales business, for the tests of tools.text."""

import yaml

from tools.text.vocabulary import Vocabulary

YAML = """
kinds:
  region:
    place: true
    values:
      east_china: [华东, 华东区, 华东地区, East China, Eastern China]
      south_china: [华南, 华南区, 华南地区, South China, Southern China]
      north_china: [华北, North China]
  city:
    place: true
    values:
      shanghai: [上海, 上海市, Shanghai]
      nanjing: [南京, Nanjing]
      hangzhou: [杭州, Hangzhou]
      suzhou: [苏州, Suzhou]
      guangzhou: [广州, Guangzhou, Canton]
      shenzhen: [深圳, Shenzhen]
      beijing: [北京, Beijing]
      xian: [西安, "Xi'an"]
  metric:
    values:
      sales: [销售额, 销售, 营收, 营业额, 业绩, sales, revenue, turnover, sales amount]
      orders: [订单数, 订单量, orders, number of orders]
      returns: [退货量, 退货, returns]
  dimension:
    values:
      city: [城市, city, cities]
      region: [区域, 大区, 地区, region, regions]
      month: [月份]
groups:
  - {kind: city, values: [beijing, shanghai, guangzhou, shenzhen], aliases: [北上广深, tier-one cities]}
"""


def sales_vocabulary() -> Vocabulary:
    return Vocabulary.from_mapping(yaml.safe_load(YAML))
