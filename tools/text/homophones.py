"""Tell whether two Chinese characters sound alike, tones aside: what an input method offers side by side.

The 3755 common characters of GB 2312 (rows 16 to 55) stand in the order of their Pinyin, so the characters of one
syllable are a range, and the first one of each syllable says where it begins. A character with several readings
stands under one of them only.
"""

from bisect import bisect_right

_FIRST_OF_SYLLABLE = (
    "啊埃鞍肮凹芭白斑邦苞杯奔崩逼鞭标鳖彬兵玻捕擦猜餐苍操厕层插拆搀昌超车郴撑吃充抽初揣川疮吹春戳疵聪凑粗蹿摧村磋搭呆耽当刀德蹬堤颠碉跌丁"
    "丢东兜督端堆墩掇蛾恩而发藩坊菲芬丰佛否夫噶该干冈篙哥给根耕工钩辜刮乖棺光瑰辊锅哈骸酣夯壕呵嘿痕哼轰喉呼花槐欢荒灰荤豁击嘉歼僵蕉揭巾荆"
    "炯揪鞠捐撅均喀开刊康考坷肯坑空抠枯夸块宽匡亏坤括垃莱蓝琅捞勒雷棱厘俩联粮撩列琳玲溜龙楼芦驴峦掠抡萝妈埋瞒芒猫么玫门萌眯棉苗蔑民明谬摸"
    "谋拇拿氖南囊挠呢馁嫩能妮蔫娘鸟捏您柠牛脓奴女暖虐挪哦欧啪拍攀乓抛呸喷砰坯篇飘撇拼乒坡扑期掐牵枪橇切钦青琼秋趋圈缺裙然瓤饶惹壬扔日戎揉"
    "茹软蕊闰若撒腮三桑搔瑟森僧莎筛珊墒梢奢砷声师收蔬刷摔栓霜谁吮说斯松搜苏酸虽孙蓑塌胎坍汤掏特藤梯天挑贴厅通偷凸湍推吞拖挖歪豌汪威瘟嗡挝"
    "巫昔瞎掀相萧楔薪星兄休墟轩靴勋压焉殃邀椰一茵英哟拥幽迂鸳曰耘匝栽咱赃遭责贼怎增扎摘瞻樟招遮珍蒸芝中舟珠抓拽专桩椎谆捉兹鬃邹租钻嘴尊昨"
)
_STARTS = [char.encode("gb2312") for char in _FIRST_OF_SYLLABLE]
_END = b"\xd8\xa1"
"""The first of the less common characters, which are in the order of their radicals."""


def sound_alike(one: str, other: str) -> bool:
    """Whether two different characters are common ones with the same syllable."""
    syllable = _syllable(one)
    return one != other and syllable is not None and syllable == _syllable(other)


def _syllable(char: str) -> int | None:
    try:
        code = char.encode("gb2312")
    except UnicodeEncodeError:
        return None
    if len(code) != 2 or not _STARTS[0] <= code < _END:
        return None
    return bisect_right(_STARTS, code)
