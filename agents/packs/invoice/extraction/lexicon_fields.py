"""Labels of the fields that are extracted, folded or as printed; see `lexicon`."""

STRONG, FAIR, WEAK = 1.0, 0.85, 0.66
"""How surely a phrase names its field."""

FIELD_PHRASES: dict[tuple[str, float], str] = {
    ("number", STRONG): """
        invoice no|invoice number|invoice num|invoice nr|invoice #|invoice id|invoice ref|invoice reference|
        inv no|inv nr|inv #|inv number|tax invoice no|tax invoice number|bill no|bill number|bill #|our invoice|
        our invoice no|credit note no|credit note number|credit note #|credit memo no|invoice n|
        commercial invoice no|proforma no|receipt no|receipt number|receipt #|statement no|statement number|
        invoice serial no|
        invoice code|number of invoice|no of invoice|invoice document no|rechnungsnummer|rechnungs nr|
        rechnungsnr|rechnung nr|rechnung nummer|rechnung no|re nr|renr|rg nr|rgnr|re nummer|rechn nr|
        rechnungs no|rechnungs id|gutschriftnummer|gutschrift nr|gutschriftsnummer|gutschrifts nr|fakturanummer|
        faktura nr|faktura|rechnungskennung|quittungsnummer|bon nr|facture no|facture n|no facture|n facture|
        no de facture|n de facture|numero de facture|numero facture|num facture|facture num|facture numero|
        ref facture|reference facture|reference de facture|facture ref|no de la facture|numero de la facture|
        avoir no|numero d avoir|facture d acompte no|no piece|numero de piece|factuurnummer|factuurnr|
        factuur nr|factuur nummer|factuur no|factuur n|factuurno|fact nr|factnr|factuurkenmerk|creditnota nr|
        creditnummer|
        creditnotanummer|creditfactuurnummer|nota nr|notanummer|factura no|factura n|factura num|factura numero|
        no de factura|n de factura|numero de factura|numero factura|no factura|n factura|num factura|
        num de factura|factura nro|nro factura|nro de factura|factura n o|n o factura|n o de factura|fra no|
        no fra|n fra|ref factura|serie y numero|numero de la factura|codigo de factura|fattura n|fattura no|
        numero fattura|n fattura|fattura nr|fattura numero|numero documento|nr fattura|num fattura|fatura n|
        fatura no|numero da fatura|no da fatura|fatura numero|nota fiscal no|numero da nota|发票号码|发票编号|
        发票号|票据号码|发票单号|发票序号|发票No|票号|發票號碼|發票編號|發票號|請求書番号|請求番号|
        インボイス番号|发票流水号
    """,
    ("number", FAIR): """
        document no|document number|document nr|document #|doc no|doc number|document id|doc nr|voucher no|
        belegnummer|beleg nr|belegnr|dokumentnummer|dokument nr|vorgangsnummer|documentnummer|document numero|
        no de document|numero de document|numero de documento|no documento|n documento|documento no|
        no du document|单据编号|单据号|单据号码
    """,
    ("number", WEAK): """
        单号|编号|號碼|no|number|nr|nummer|numero|num|#|nro|our reference|our ref|unser zeichen|notre reference|
        ons kenmerk|serial no|序号
    """,
    ("title", WEAK): """
        invoice|tax invoice|sales invoice|commercial invoice|proforma invoice|pro forma invoice|vat invoice|
        credit note|credit memo|bill|rechnung|handelsrechnung|ausgangsrechnung|schlussrechnung|
        abschlagsrechnung|teilrechnung|gutschrift|honorarrechnung|facture|facture commerciale|avoir|
        note de credit|factuur|verkoopfactuur|creditnota|creditfactuur|nota|factura|factura comercial|
        factura rectificativa|factura simplificada|fattura|nota di credito|fatura|receipt|quittung|recu|发票|
        增值税专用发票|增值税普通发票|增值税电子普通发票|电子发票|商业发票|形式发票|發票|請求書
    """,
    ("date", STRONG): """
        rechnungs und lieferdatum|rechnungs und leistungsdatum|rechnungs lieferdatum|
        rechnungsdatum und lieferdatum|rechnungsdatum gleich lieferdatum|invoice date|date of invoice|
        invoice dated|date of issue|issue date|issued on|issued|date issued|bill date|billing date|tax point|
        tax point date|document date|doc date|inv date|date invoiced|invoiced on|dated|date of bill|
        credit note date|date of credit|credit date|statement date|receipt date|invoice issued|tax date|
        invoice issue date|rechnungsdatum|datum der rechnung|rechnung vom|ausstellungsdatum|ausgestellt am|
        belegdatum|re datum|rg datum|rechn datum|rechnungs datum|fakturadatum|datum rechnung|erstellt am|
        erstellungsdatum|gutschriftsdatum|rechnungsstellung|ausstellungstag|date de facture|date facture|
        date de la facture|date d emission|date emission|date de facturation|emise le|emis le|etabli le|
        etablie le|facture du|en date du|facturee le|date d etablissement|date du document|date d edition|
        facture en date du|facture le|factuurdatum|datum factuur|datum van factuur|notadatum|factuur datum|
        datum van uitgifte|uitgiftedatum|documentdatum|fecha de factura|fecha factura|fecha de la factura|
        fecha de emision|fecha emision|fecha de expedicion|fecha expedicion|emitida el|fecha de facturacion|
        expedida el|fecha documento|fecha del documento|data fattura|data della fattura|data di emissione|
        data emissione|data documento|data da fatura|data de emissao|emitida em|开票日期|发票日期|开具日期|
        出票日期|填开日期|開票日期|發票日期|开单日期|発行日|請求日|発行年月日|签发日期|制单日期
    """,
    ("date", WEAK): """
        date|datum|fecha|data|date le|le|日期|date place|ort datum|datum ort|place date|date time|printed|vom|
        den|日付
    """,
    ("due", STRONG): """
        due date|payment due|due|due on|due by|pay by|payable by|payment due by|payment due date|date due|
        payment date|please pay by|pay before|to be paid by|to be paid before|payable on|settlement date|
        payment deadline|pay on or before|net due date|payment due on|maturity date|amount due by|
        payable before|due for payment|remit by|net due|please remit by|settlement by|settle by|pay in full by|
        by direct debit on|direct debit on|debited on|will be debited on|abbuchung am|buchen wir am|
        wird abgebucht am|preleve le|sera preleve le|montant preleve le|prelevement le|ohne abzug bis|
        payment by|direct debit date|due date for payment|fallig am|fallig|
        falligkeit|falligkeitsdatum|zahlbar bis|zahlungsziel|zahlung bis|zu zahlen bis|falligkeitstermin|
        zahlbar am|zahlungsfrist|zahlungstermin|bitte uberweisen sie bis|zahlung fallig am|zahlbar bis zum|
        zahlung fallig|netto bis|fallig bis|zahlungseingang bis|zahldatum|echeance|date d echeance|
        date echeance|a payer avant le|a payer avant|date limite de paiement|payable le|payable avant le|
        a regler avant le|a regler avant|a regler au plus tard le|date de paiement|a payer le|date de reglement|
        date limite|
        reglement avant le|echeance le|a payer pour le|payable au plus tard le|paiement avant le|vervaldatum|
        te betalen voor|uiterste betaaldatum|betalen voor|vervalt op|uiterlijk te betalen|betaaldatum|
        te betalen uiterlijk|betaal voor|vervaldag|betalen voor of op|uiterlijk betalen op|uiterlijk|
        te voldoen voor|vencimiento|fecha de vencimiento|fecha vencimiento|fecha limite de pago|vence el|vence|
        fecha de pago|fecha limite|vencimientos|pagar antes del|fecha de cobro|pagadero antes del|vto|fecha vto|
        scadenza|data scadenza|data di scadenza|vencimento|data de vencimento|pagare entro|到期日|付款期限|
        付款到期日|应付日期|到期日期|付款日期|最后付款日|支払期限|お支払期限|付款截止日期|缴费截止日|最晚付款日
    """,
    ("due", WEAK): """
        bis zum|bis spatestens|bis|avant le|antes del|on or before|no later than|spatestens|voor|jusqu au|until|
        before
    """,
    ("total", STRONG): """
        grand total|total due|amount due|balance due|total amount due|total incl vat|total including vat|
        total inc vat|total incl tax|total including tax|total inc tax|invoice total|total amount|total payable|
        amount payable|total to pay|amount to pay|total invoice amount|total invoice value|total invoice|
        total gross|gross total|gross amount|gross|balance payable|please pay|total amount payable|
        total incl gst|total inc gst|total including gst|net payable|total charges|total value|total due now|
        total with tax|total with vat|total balance due|pay this amount|invoice amount|total incl|order total|
        final total|invoice value|total after tax|total cost|total new charges|total current charges|
        amount charged|total charged|credit total|total credit|payable amount|total owed|you owe|total cif|
        total fob|total cfr|total exw|total fca|total cpt|total cip|
        total dap|total ddp|amount owing|amount owed|
        total sum|sum total|total inclusive of vat|to pay|total invoice amount incl vat|total amount incl vat|
        amount incl vat|amount including vat|total amount including vat|total vat incl|invoice grand total|
        total inclusive|total amount due and payable|now due|bill total|gesamtbetrag|rechnungsbetrag|
        gesamtsumme|bruttobetrag|endbetrag|zu zahlen|summe brutto|zahlbetrag|rechnungssumme|bruttosumme|
        gesamtbetrag brutto|gesamt brutto|brutto|brutto gesamt|endsumme|zu zahlender betrag|
        zu zahlender gesamtbetrag|zahlungsbetrag|rechnungsendbetrag|gesamtbetrag inkl mwst|gesamt inkl mwst|
        summe inkl mwst|betrag inkl mwst|total inkl mwst|zu bezahlen|rechnungstotal|gesamtbetrag inkl ust|
        rechnungsbetrag brutto|total brutto|gesamtrechnungsbetrag|zu uberweisender betrag|uberweisungsbetrag|
        falliger betrag|offener betrag|gutschriftsbetrag|gutschriftbetrag|gesamt inkl ust|
        rechnungsbetrag inkl mwst|inkl mwst|gesamtpreis inkl mwst|gesamtpreis brutto|summe inkl ust|
        abrechnungsbetrag|betrag brutto|fakturabetrag|total inkl|bruttoendbetrag|bruttorechnungsbetrag|
        nachzahlung|total rechnung|gesamtforderung|total ttc|net a payer|montant ttc|total a payer|
        montant total ttc|a payer|montant total|montant net a payer|net a payer ttc|total general|
        montant a payer|total facture|montant de la facture|total toutes taxes comprises|ttc|prix total ttc|
        net a regler|total a regler|montant total a payer|solde a payer|somme a payer|total net a payer|
        montant facture|total du|montant toutes taxes comprises|total net ttc|montant du|reste a payer|
        total tvac|tvac|total de la facture|total tva comprise|total tva incluse|total avec tva|totaal incl btw|
        te betalen|totaalbedrag|factuurbedrag|totaal te voldoen|te voldoen|totaal inclusief btw|
        totaal te betalen|te betalen bedrag|totaal factuur|totaalbedrag incl btw|bedrag incl btw|totaal incl|
        eindtotaal|factuurtotaal|te ontvangen|totaalprijs|nog te betalen|totaal bedrag|totaal inclusief|
        bedrag inclusief btw|totale prijs|totaal bedrag incl btw|te voldoen bedrag|openstaand bedrag|bruto|
        brutobedrag|totaal bruto|factuur totaal|total factura|importe total|total a pagar|total con iva|
        total iva incluido|total con impuestos|a pagar|importe a pagar|total importe|importe total factura|
        liquido a percibir|total euros|monto total|total neto a pagar|importe factura|total de la factura|
        suma total|total iva incl|importe de la factura|liquido a pagar|importe liquido|importe total con iva|
        total con i v a|importe bruto|total bruto|total bruto a pagar|totale fattura|totale da pagare|
        totale documento|importo totale|netto a pagare|totale complessivo|totale ivato|total da fatura|
        valor total|total geral|价税合计|价税合计小写|价税合计大写|总计|应付总额|总金额|合计含税|应付金额|
        含税金额|含税合计|合计应付|发票总额|应付款|应付合计|总价|實付金額|应收金额|实付金额|总额|本期应付|
        合计总额|小写|金额总计|價稅合計|總計|應付金額|総計|請求金額|ご請求金額|税込合計|合計金額|お支払金額|
        发票金额|含税总价|含税总额|总计金额|订单总额|付款金额|应付总金额|含税总金额
    """,
    ("total", WEAK): """
        total|totals|amount|sum|gesamt|summe|betrag|total general|montant|totaal|bedrag|importe|totale|importo|
        合计|总|合計|金額合計
    """,
    ("net", STRONG): """
        subtotal|sub total|net amount|net total|total excl vat|total before tax|total ex vat|net|total net|
        total excluding vat|amount excl vat|total excl tax|total exc vat|total excluding tax|taxable amount|
        taxable value|net value|goods total|amount before tax|total without vat|total without tax|total excl|
        net price|merchandise total|items total|item subtotal|taxable|net invoice amount|total excl gst|
        total ex gst|excl vat|excluding vat|vatable amount|total goods|amount net of vat|cart subtotal|net sum|
        tax base|nett|nett amount|net goods|sub total excl vat|amount excluding vat|total amount excl vat|
        total exclusive|net sales|vat base|zwischensumme|nettobetrag|summe netto|netto|gesamt netto|nettosumme|
        gesamtbetrag netto|warenwert|gesamtnetto|netto gesamt|total netto|nettowert|zwischentotal|
        rechnungsbetrag netto|netto betrag|summe ohne mwst|betrag netto|total exkl mwst|exkl mwst|
        gesamt ohne mwst|netto summe|positionssumme|warensumme|gesamt exkl mwst|summe exkl mwst|total ohne mwst|
        bemessungsgrundlage|gesamtsumme netto|summe positionen|nettopreis|nettoentgelt|entgelt|warenwert netto|
        total ht|montant ht|sous total|total hors taxes|net ht|montant hors taxes|total net ht|base ht|
        total hors tva|montant net|sous total ht|total htva|htva|ht|base imposable|total brut ht|brut ht|
        montant net ht|total marchandises|base tva|total hors taxe|net commercial|montant total ht|total ht net|
        hors tva|subtotaal|totaal excl btw|bedrag excl btw|totaal exclusief btw|totaal excl|totaal netto|
        nettobedrag|exclusief btw|netto bedrag|subtotaal excl btw|bedrag exclusief btw|goederenbedrag|maatstaf|
        grondslag|excl btw|tussentotaal|totaal goederen|base imponible|bases|new charges|
        new charges for this period|charges this period|importe neto|total sin iva|base|total neto|suma|
        total bruto sin iva|neto|importe sin iva|total antes de impuestos|subtotal sin iva|base i v a|
        importe base|total bases|total base imponible|suma y sigue|bruto sin iva|bases imponibles|imponibile|
        totale imponibile|totale netto|base tributavel|valor liquido|金额合计|合计金额|不含税金额|小计|未税金额|
        不含税合计|净额|税前金额|小計|未稅金額|税抜|不含税总额|不含税价|商品金额|货款|不含税总价
    """,
    ("tax", STRONG): """
        vat|sales tax|tax|vat amount|gst|hst|pst|qst|total vat|total tax|tax amount|value added tax|vat total|
        tax total|vat at|state tax|county tax|city tax|use tax|gst amount|consumption tax|total gst|output vat|
        plus vat|add vat|vat payable|cgst|sgst|igst|mwst|ust|mehrwertsteuer|umsatzsteuer|zzgl mwst|zzgl ust|
        mwst betrag|steuerbetrag|ust betrag|plus mwst|gesetzl mwst|zuzuglich mwst|summe mwst|mwst gesamt|steuer|
        zzgl mehrwertsteuer|zzgl umsatzsteuer|enthaltene mwst|gesetzliche mwst|enthaltene mehrwertsteuer|
        gesamt mwst|mehrwertsteuerbetrag|umsatzsteuerbetrag|gesetzliche umsatzsteuer|vat mwst|mwst total|tva|
        total tva|montant tva|montant de la tva|dont tva|taxe|taxes|tps|tvq|total taxes|montant des taxes|
        total de la tva|tva a|btw|btw bedrag|btwbedrag|totaal btw|omzetbelasting|btw totaal|bedrag btw|plus btw|
        iva|cuota iva|i v a|total iva|importe iva|cuota|impuestos|total impuestos|igic|iva repercutido|
        cuota de iva|cuotas|importe i v a|cuota i v a|impuesto|total cuota iva|imposta|totale iva|importo iva|
        税额|增值税|税额合计|合计税额|税金|增值税额|稅額|消費税|税款
    """,
    ("supplier", WEAK): """
        from|van|von
    """,
    ("supplier", STRONG): """
        seller|supplier|vendor|billed by|sold by|shipper|exporter|issued by|pay to|remit to|payee|
        beneficiary|service provider|absender|lieferant|verkaufer|rechnungssteller|leistungserbringer|
        zahlungsempfanger|kontoinhaber|aussteller|empfanger zahlung|emetteur|fournisseur|vendeur|prestataire|
        beneficiaire|expediteur|titulaire|leverancier|verkoper|afzender|ten name van|tnv|emisor|proveedor|
        vendedor|expedidor|beneficiario|razon social|fornitore|cedente|fornecedor|emitente|销售方|
        供应商|卖方|销方|销方名称|销售方名称|卖方名称|收款人|收款单位|开票单位|销售单位|供方|賣方|収款単位|
        发货人|户名|供货商|收款方|开户名
    """,
    ("buyer", STRONG): """
        bill to|invoice to|customer|sold to|billed to|client|buyer|consignee|ship to|deliver to|purchaser|
        invoiced to|charge to|customer name|attention|attn|recipient|to|importer|delivery address|
        billing address|shipping address|invoice address|account name|notify party|bill to address|
        customer details|for|payer|delivered to|rechnung an|kunde|rechnungsempfanger|empfanger|kaufer|
        rechnungsadresse|lieferadresse|lieferanschrift|rechnungsanschrift|auftraggeber|besteller|
        leistungsempfanger|an|warenempfanger|zahlungspflichtiger|zahlbar durch|lieferung an|facture a|
        destinataire|adresse a|acheteur|facturee a|adresse de facturation|adresse de livraison|livre a|
        factuur aan|klant|aan|koper|factuuradres|afleveradres|afnemer|bezorgadres|leveradres|ter attentie van|
        tav|facturar a|cliente|datos del cliente|comprador|destinatario|enviar a|datos cliente|
        direccion de envio|direccion de facturacion|cessionario|spett le|购买方|客户|买方|购方名称|购方|
        购买方名称|客户名称|收货人|买方名称|付款方|付款单位|购货单位|需方|買方|抬头|收货方|采购方|付款人|收票方
    """,
    ("currency", STRONG): """
        currency|all amounts in|amounts in|currency code|prices in|invoice currency|all prices in|wahrung|
        alle betrage in|betrage in|devise|monnaie|montants en|valuta|munt|moneda|divisa|importes en|币种|货币|
        币别|货币单位|貨幣|単位
    """,
    ("terms", STRONG): """
        terms|payment terms|terms of payment|credit terms|payment conditions|payment method|method of payment|
        zahlungsbedingungen|zahlungskonditionen|zahlungsbedingung|zahlungsart|zahlungsweise|zahlung|
        conditions de paiement|modalites de paiement|conditions de reglement|mode de reglement|mode de paiement|
        betalingsvoorwaarden|betalingstermijn|betalingsconditie|betaalwijze|betalingscondities|forma de pago|
        condiciones de pago|metodo de pago|terminos de pago|condizioni di pagamento|付款方式|付款条件|结算方式|
        支付方式|付款条款|结算条款|付款约定
    """,
    ("incoterm", STRONG): """
        incoterm|incoterms|incoterms 2020|incoterms 2010|trade terms|delivery terms|terms of delivery|
        lieferbedingungen|lieferbedingung|conditions de livraison|leveringsvoorwaarden|condiciones de entrega|
        贸易条款|贸易术语|贸易方式|价格条款|交货条件|成交方式|交货条款
    """,
    ("hs", STRONG): """
        hs code|hs codes|hs no|hs number|tariff code|tariff no|tariff number|customs code|commodity code|
        hts code|hts|hs|customs tariff no|customs tariff number|harmonised code|harmonized code|cn code|taric|
        hsn|hsn code|hs tariff|zolltarifnummer|zolltarif nr|warennummer|zolltarifnr|statistische warennummer|
        warentarifnummer|code sh|code douanier|nomenclature douaniere|code nc|no tarifaire|numero tarifaire|
        goederencode|gn code|statistieknummer|hs code goederen|tariefcode|codigo arancelario|
        partida arancelaria|codigo hs|codigo taric|posicion arancelaria|海关编码|商品编码|税则号列|税则号|
        hs编码|商品编号|hs编号|关税编码|税号hs
    """,
}
"""Kind and strength to phrases, parted by bars."""
