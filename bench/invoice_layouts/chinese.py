"""Layouts of mainland China: the electronic VAT invoice of the tax office and the exporter's bilingual sheet."""

from decimal import Decimal
from random import Random

from bench.invoice_layouts.blocks import (
    Pair,
    address,
    bank_lines,
    currency_note,
    due_pair,
    lines_down,
    logo,
    pairs_in_cells,
)
from bench.invoice_layouts.invoice import Invoice, Party
from bench.invoice_layouts.look import Look
from bench.invoice_layouts.sheet import Colour, Content, Run, Sheet
from bench.invoice_layouts.tables import columns_of, draw_table

_BROWN: Colour = (128, 66, 30)
_DIGITS = "零壹贰叁肆伍陆柒捌玖"
_UNITS = ("", "拾", "佰", "仟")
_SECTIONS = ("", "万", "亿")


def tax_office_invoice(sheet: Sheet, inv: Invoice, rng: Random, look: Look) -> None:
    """The electronic VAT invoice: brown frame, buyer and seller side by side, sum in words and figures."""
    left, right, top = 30.0, sheet.width - 30, 106.0
    width = right - left
    kind = rng.choice(("电子发票（增值税专用发票）", "电子发票（普通发票）"))
    sheet.write(left + 250, 62, kind, size=16, colour=_BROWN, align="center")
    sheet.rule(left + 135, 68, left + 365, 68, colour=_BROWN)
    sheet.rule(left + 135, 71, left + 365, 71, colour=_BROWN)
    sheet.write(right - 160, 60, [Run("发票号码："), Run(inv.number, "number")], size=8.5, limit=160)
    sheet.write(right - 160, 78, [Run("开票日期："), inv.day(inv.date, "date")], size=8.5, limit=160)
    sheet.box(left, top, width, 362, edge=_BROWN, thick=1)
    for x, caption, party, field in (
        (left, "购买方信息", inv.buyer, None),
        (left + width / 2, "销售方信息", inv.seller, "supplier"),
    ):
        _fapiao_party(sheet, x, top, width / 2, caption, party, field)
    sheet.rule(left, top + 72, right, top + 72, colour=_BROWN)
    heads = ("项目名称", "单位", "数量", "单价", "金额", "税率", "税额")
    edges = (0.0, 0.36, 0.44, 0.56, 0.70, 0.83, 0.90)
    ends = (*edges[1:], 1.0)
    for head, start, end in zip(heads, edges, ends, strict=True):
        sheet.write(left + width * (start + end) / 2, top + 86, head, size=8.5, colour=_BROWN, align="center")
    y = top + 104
    for item in inv.items:
        tax = (item.amount * item.rate / 100).quantize(Decimal("0.01"))
        cells: tuple[Content, ...] = (
            f"*{rng.choice(('金属制品', '通用设备', '信息技术服务', '纺织产品'))}*{item.description}",
            item.unit,
            inv.quantity_text(item),
            f"{item.price:.2f}",
            Run(f"{item.amount:.2f}", "lines"),
            f"{item.rate}%" if item.rate else "免税",
            f"{tax:.2f}" if item.rate else "***",
        )
        for index, (cell, start, end) in enumerate(zip(cells, edges, ends, strict=True)):
            right_side = index >= 2
            x = left + width * end - 4 if right_side else left + width * start + 4
            sheet.write(
                x, y, cell, size=8.5, align="right" if right_side else "left", limit=width * (end - start) - 8
            )
        y += 17
    base = top + 252
    sheet.write(left + 60, base, "合        计", size=9, colour=_BROWN)
    sheet.write(left + width * ends[4] - 4, base, f"¥{inv.net:.2f}", size=9, align="right", limit=90)
    sheet.write(
        right - 4,
        base,
        [Run("¥", "currency"), Run(f"{inv.tax:.2f}", "tax")] if inv.taxes else "***",
        size=9,
        align="right",
        limit=70,
    )
    sheet.rule(left, base + 10, right, base + 10, colour=_BROWN)
    sheet.write(left + 40, base + 28, "价税合计（大写）", size=9, colour=_BROWN)
    sheet.write(left + 150, base + 28, chinese_sum(inv.total), size=10, limit=210)
    figures = [Run("（小写） "), Run("¥", "currency"), Run(f"{inv.total:.2f}", "total")]
    sheet.write(right - 16, base + 28, figures, size=10, align="right")
    sheet.rule(left, base + 40, right, base + 40, colour=_BROWN)
    sheet.write(left + 8, base + 56, "备注", size=8.5, colour=_BROWN)
    remarks = [
        f"{inv.word('order')}：{inv.order}",
        f"销方开户银行：{inv.account.bank}  银行账号：{inv.account.number}",
    ]
    lines_down(sheet, left + 44, base + 56, remarks, width=width - 60)
    sheet.write(left + 40, top + 380, f"开票人：{rng.choice(('李晓梅', '陈建国', '周敏', '刘洋'))}", size=8.5)


def exporter_sheet(sheet: Sheet, inv: Invoice, rng: Random, look: Look) -> None:
    """The Chinese company's own sheet: centred letterhead, labels with full-width colons, a ruled table."""
    left, right = 48.0, sheet.width - 48
    logo(sheet, rng, left, 34, size=30, colour=look.accent)
    sheet.write(sheet.width / 2, 54, Run(inv.seller.name, "supplier"), size=17, bold=True, align="center")
    sheet.write(
        sheet.width / 2,
        70,
        f"地址：{inv.seller.city}{inv.seller.street}    电话：{inv.seller.phone}",
        size=8,
        align="center",
    )
    sheet.rule(left, 80, right, 80, thick=1.2)
    sheet.write(sheet.width / 2, 106, inv.word("commercial_title"), size=16, bold=True, align="center")
    pairs: list[Pair] = [
        (inv.word("number"), Run(inv.number, "number")),
        (inv.word("date"), inv.day(inv.date, "date")),
        (inv.word("order"), inv.order),
        due_pair(inv),
    ]
    if inv.incoterm:
        pairs.append((inv.word("incoterm"), Run(inv.incoterm, "incoterm")))
    y = 132.0
    address(sheet, left, y + 14, inv.buyer, width=240)
    sheet.write(left, y, f"{inv.word('bill_to')}：", size=9, bold=True)
    for label, value in pairs:
        content = [Run(f"{label}：")]
        content += [value] if isinstance(value, Run) else [Run(str(value))]
        sheet.write(330, y, content, size=9, limit=right - 330)
        y += 15
    columns = columns_of(
        inv,
        ("pos", "description", "hs", "quantity", "unit", "unit_price", "amount"),
        right - left,
        marked=look.marked,
    )
    y = draw_table(
        sheet, inv, left, max(y, 204) + 8, columns, style=look.table_of("grid", "band"), accent=look.accent, size=9
    )
    summary: list[Pair] = (
        [(inv.word("net"), inv.money(inv.net))] if inv.taxes or inv.discount or inv.shipping else []
    )
    if inv.discount:
        summary.insert(0, (inv.word("discount"), inv.money(inv.discount)))
    if inv.shipping:
        summary.insert(0, (inv.word("shipping"), inv.money(inv.shipping)))
    summary += [(inv.tax_label(line), inv.money(line.amount, "tax")) for line in inv.taxes]
    if look.chance("strip", 0.4) and summary:
        label = "".join(run.text for run in inv.total_label())
        y = pairs_in_cells(
            sheet, left, y + 10, [*summary, (label, inv.money(inv.total, "total"))], width=right - left, height=36
        )
    else:
        y += 18
        for label, value in summary:
            sheet.write(right - 130, y, f"{label}：", size=9.5, align="right")
            sheet.write(right, y, value, size=9.5, align="right")
            y += 16
        sheet.write(right - 130, y, [*inv.total_label(), Run("：")], size=10.5, bold=True, align="right")
        sheet.write(right, y, inv.money(inv.total, "total"), size=10.5, bold=True, align="right")
    if inv.notation.currency == "CNY" and look.chance("words", 0.5):
        y += 18
        sheet.write(left, y, f"人民币大写：{chinese_sum(inv.total)}", size=9)
    if inv.deposit:
        y += 18
        rest = [Run(f"{inv.word('deposit')}："), *inv.money(inv.deposit), Run(f"    {inv.word('balance')}：")]
        sheet.write(left, y, [*rest, *inv.money(inv.total - inv.deposit)], size=9)
    sheet.write(left, y + 22, currency_note(inv), size=8.5)
    y = lines_down(sheet, left, y + 46, bank_lines(inv, holder=True), width=320, size=9)
    sheet.paragraph(left, y + 8, inv.word("declaration"), width=right - left, size=8.5)
    sheet.write(right, y + 50, f"{inv.seller.name}（盖章）", size=9, align="right")


def chinese_sum(amount: Decimal) -> str:
    """An amount in the capital numerals that Chinese invoices must carry, e.g. ``壹佰零伍圆贰角整``."""
    whole, cents = divmod(int(amount * 100), 100)
    text, zero = "", False
    sections = []
    while whole:
        whole, part = divmod(whole, 10_000)
        sections.append(part)
    for index in range(len(sections) - 1, -1, -1):
        part = sections[index]
        zero = zero or (bool(text) and part < 1000)
        for place in range(3, -1, -1):
            digit = part // 10**place % 10
            if not digit:
                zero = zero or bool(text)
                continue
            text += ("零" if zero and text else "") + _DIGITS[digit] + _UNITS[place]
            zero = False
        if part:
            text += _SECTIONS[index]
            zero = False
    jiao, fen = divmod(cents, 10)
    text = (text or "零") + "圆"
    if not cents:
        return text + "整"
    text += f"{_DIGITS[jiao]}角" if jiao else "零"
    return text + (f"{_DIGITS[fen]}分" if fen else "整")


def _fapiao_party(
    sheet: Sheet, x: float, top: float, width: float, caption: str, party: Party, field: str | None
) -> None:
    for index, character in enumerate(caption):
        sheet.write(x + 9, top + 16 + index * 12, character, size=8.5, colour=_BROWN, align="center")
    sheet.rule(x + 18, top, x + 18, top + 72, colour=_BROWN)
    sheet.write(x + 24, top + 22, [Run("名称："), Run(party.name, field)], size=9, limit=width - 30)
    sheet.write(x + 24, top + 54, f"统一社会信用代码/纳税人识别号：{party.vat}", size=8, limit=width - 30)
