"""The words that invoices label their fields with, in six languages and some more.

English, German, French, Dutch, Spanish and Chinese; some Italian, Portuguese and Japanese.

Each kind of label lists phrases by strength: `strong` ones name the field for certain, `weak` ones may mean
something else too. Kinds that are no field of ours (`order`, `paid`, ...) are as important: a value that belongs to
one of them belongs to none of ours.
"""

from dataclasses import dataclass

from agents.packs.invoice.extraction.folding import compacted

STRONG, FAIR, WEAK = 1.0, 0.85, 0.66

_PHRASES: dict[tuple[str, float], str] = {
    ("number", STRONG): """
        invoice no|invoice number|invoice num|invoice nr|invoice #|invoice id|invoice ref|invoice reference|
        inv no|inv nr|inv #|inv number|tax invoice no|tax invoice number|bill no|bill number|bill #|our invoice|
        our invoice no|credit note no|credit note number|credit note #|credit memo no|invoice n|
        commercial invoice no|proforma no|receipt no|receipt number|receipt #|statement no|invoice serial no|
        invoice code|number of invoice|no of invoice|invoice document no|rechnungsnummer|rechnungs nr|
        rechnungsnr|rechnung nr|rechnung nummer|rechnung no|re nr|renr|rg nr|rgnr|re nummer|rechn nr|
        rechnungs no|rechnungs id|gutschriftnummer|gutschrift nr|gutschriftsnummer|gutschrifts nr|fakturanummer|
        faktura nr|faktura|rechnungskennung|quittungsnummer|bon nr|facture no|facture n|no facture|n facture|
        no de facture|n de facture|numero de facture|numero facture|num facture|facture num|facture numero|
        ref facture|reference facture|reference de facture|facture ref|no de la facture|numero de la facture|
        avoir no|numero d avoir|facture d acompte no|no piece|numero de piece|factuurnummer|factuurnr|
        factuur nr|factuur nummer|factuur no|factuur n|factuurno|fact nr|factnr|factuurkenmerk|creditnota nr|
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
        invoice date|date of invoice|invoice dated|date of issue|issue date|issued on|issued|date issued|
        bill date|billing date|tax point|tax point date|document date|doc date|inv date|date invoiced|
        invoiced on|dated|date of bill|credit note date|date of credit|credit date|statement date|receipt date|invoice issued|tax date|
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
        payable before|due for payment|payment by|direct debit date|due date for payment|fallig am|fallig|
        falligkeit|falligkeitsdatum|zahlbar bis|zahlungsziel|zahlung bis|zu zahlen bis|falligkeitstermin|
        zahlbar am|zahlungsfrist|zahlungstermin|bitte uberweisen sie bis|zahlung fallig am|zahlbar bis zum|
        zahlung fallig|netto bis|fallig bis|zahlungseingang bis|zahldatum|echeance|date d echeance|
        date echeance|a payer avant le|a payer avant|date limite de paiement|payable le|payable avant le|
        a regler avant le|a regler avant|date de paiement|a payer le|date de reglement|date limite|
        reglement avant le|echeance le|a payer pour le|payable au plus tard le|paiement avant le|vervaldatum|
        te betalen voor|uiterste betaaldatum|betalen voor|vervalt op|uiterlijk te betalen|betaaldatum|
        te betalen uiterlijk|betaal voor|vervaldag|betalen voor of op|uiterlijk betalen op|uiterlijk|
        te voldoen voor|vencimiento|fecha de vencimiento|fecha vencimiento|fecha limite de pago|vence el|vence|
        fecha de pago|fecha limite|vencimientos|pagar antes del|fecha de cobro|pagadero antes del|vto|fecha vto|
        scadenza|data scadenza|data di scadenza|vencimento|data de vencimento|pagare entro|到期日|付款期限|
        付款到期日|应付日期|到期日期|付款日期|最后付款日|支払期限|お支払期限|付款截止日期|缴费截止日|最晚付款日
    """,
    ("due", WEAK): """
        bis zum|bis spatestens|bis|avant le|antes del|on or before|no later than|spatestens|voor|jusqu au|until|before
    """,
    ("other_date", STRONG): """
        delivery date|date of delivery|ship date|shipped on|shipping date|service date|date of supply|
        supply date|delivered on|dispatch date|order date|po date|date ordered|date of order|ordered on|period|
        billing period|service period|date of service|date shipped|print date|contract date|start date|end date|
        from date|next invoice|date paid|paid on|payment received on|arrival date|departure date|etd|eta|
        date of birth|delivery|loading date|statement period|reading date|meter reading|valid until|expiry date|
        vat date|supply period|performance date|customer since|next billing date|sailing date|
        bill of lading date|b l date|lieferdatum|leistungsdatum|liefertermin|leistungszeitraum|lieferzeitraum|
        versanddatum|bestelldatum|auftragsdatum|bestellt am|bestellung vom|lieferung am|lieferung vom|
        auftrag vom|leistungszeit|zeitraum|abrechnungszeitraum|liefertag|druckdatum|vertragsdatum|geliefert am|
        geburtsdatum|ihre bestellung vom|ihr auftrag vom|angebot vom|ihr schreiben vom|lieferschein vom|
        zeitpunkt der lieferung|gultig bis|leistungsmonat|lieferschein datum|eingangsdatum|ablesedatum|
        skonto bis|date de livraison|livre le|livree le|date de la prestation|date de prestation|
        date de commande|date commande|periode|commande du|votre commande du|date d expedition|expedie le|
        date d impression|date de vente|date de debut|date de fin|livraison le|periode de facturation|
        date de la commande|bon de livraison du|date bl|date de la livraison|date de la vente|valable jusqu au|
        leverdatum|leveringsdatum|orderdatum|besteldatum|geleverd op|bestelling van|periode van|datum levering|
        verzenddatum|afleverdatum|besteld op|uw bestelling van|geldig tot|prestatiedatum|datum bestelling|
        fecha de entrega|fecha de servicio|fecha de pedido|fecha pedido|periodo|entregado el|fecha de envio|
        periodo de facturacion|fecha de operacion|fecha operacion|su pedido de fecha|fecha albaran|
        fecha del pedido|valido hasta|fecha de devengo|fecha de alta|data consegna|data ordine|data di consegna|
        data do pedido|data de entrega|交货日期|发货日期|订单日期|下单日期|合同日期|送货日期|服务期间|服务期限|
        账单周期|出货日期|签订日期|付款日|装运日期|计费周期|打印日期|交付日期|采购日期|結算日期|納品日|注文日|
        有效期
    """,
    ("other_id", STRONG): """
        order no|order number|order #|order id|order|po number|po no|po #|p o #|p o no|p o number|po|
        purchase order|purchase order no|purchase order number|your order|your order no|your reference|your ref|
        customer po|sales order|sales order no|job no|job number|project no|project number|project|quote no|
        quote number|quotation no|contract no|contract number|reference|ref|ref no|customer no|customer number|
        customer id|customer #|customer code|customer ref|customer reference|client no|client id|client number|
        client code|account no|account number|account #|account id|account|acct no|acct #|a c no|membership no|
        member id|cust no|cust id|delivery note|delivery note no|delivery note number|delivery no|packing slip|
        packing slip no|packing list no|shipment no|shipment id|tracking no|tracking number|waybill no|awb|
        awb no|b l no|bill of lading|bill of lading no|container no|container|booking no|vat no|vat number|
        vat id|vat reg no|vat reg|vat registration no|vat registration number|vat registration|tax id|tax id no|
        tax number|tax no|ein|gst no|gst number|gstin|abn|acn|company no|company number|company reg no|
        registration no|reg no|registered no|registered in england|company registration no|fein|ssn|uen|
        co reg no|duns|eori|eori no|sort code|bank account|bank code|routing no|routing number|aba|swift|bic|
        iban|bsb|cheque no|check no|card no|transaction id|transaction no|payment reference|payment ref|
        remittance|auth code|terminal|till|cashier|store|store no|item no|item code|sku|part no|article no|
        product code|batch no|lot no|serial|model no|hs code|tariff code|meter no|meter number|supply number|
        mpan|mprn|tel|telephone|phone|fax|mobile|mob|cell|phone no|tel no|page|page no|zip|po box|seller id|
        vendor no|vendor id|supplier no|subscription id|user id|ticket no|case no|file no|matter no|policy no|
        lease no|room no|licence no|license no|permit no|bestellnummer|bestell nr|bestellnr|bestellung nr|
        bestellung|auftragsnummer|auftrags nr|auftragsnr|auftrag|auftrag nr|ihre bestellung|ihr zeichen|
        ihre referenz|ihre nr|kundennummer|kunden nr|kundennr|kd nr|kdnr|kunden no|debitor|debitoren nr|
        debitorennummer|debitor nr|lieferschein nr|lieferscheinnummer|lieferscheinnr|lieferschein|ls nr|
        angebotsnummer|angebot nr|angebots nr|vertragsnummer|vertrags nr|vertragskonto|projektnummer|projekt nr|
        projekt|referenz|referenznummer|referenz nr|ust idnr|ust id nr|ust id|ustid|ustidnr|umsatzsteuer id|
        umsatzsteuer identifikationsnummer|ust ident nr|uid|uid nr|uid nummer|steuernummer|steuer nr|st nr|stnr|
        mwst nr|mwst nummer|hrb|hra|handelsregister|amtsgericht|registergericht|kontonummer|konto nr|konto|kto|
        kto nr|blz|bankleitzahl|telefon|telefax|handy|seite|artikelnummer|artikel nr|art nr|artnr|position|
        pos nr|zahlernummer|zahler nr|mitgliedsnummer|sendungsnummer|packstuck|verwendungszweck|glaubiger id|
        mandatsreferenz|steuer id|lieferantennummer|lieferanten nr|sachbearbeiter|kostenstelle|personalnummer|
        objekt nr|verbrauchsstelle|kassenzeichen|ik nummer|no de commande|n de commande|n commande|no commande|
        commande no|commande n|commande|numero de commande|votre commande|bon de commande|bon de commande no|
        bon de commande n|bdc|no client|n client|no de client|n de client|numero client|numero de client|
        code client|ref client|reference client|client n|votre reference|vos references|votre ref|
        bon de livraison no|bon de livraison n|bon de livraison|bl no|bl n|devis no|devis n|devis|no de devis|
        contrat no|no de contrat|no tva|n tva|no de tva|n de tva|tva intracommunautaire|tva intra|
        no tva intracommunautaire|n tva intracommunautaire|numero de tva|siret|siren|rcs|ape|code ape|naf|
        code naf|n siret|no siret|compte no|no de compte|tel fax|telephone no|code banque|code guichet|rib|
        affaire no|dossier|dossier no|no dossier|chantier|no compte|rm|no ide|ide|no adherent|capital|
        ordernummer|ordernr|order nr|bestelnummer|bestelnr|uw referentie|uw kenmerk|uw order|klantnummer|
        klantnr|klant nr|debiteurnummer|debiteurnr|debiteur nr|debiteurennummer|relatienummer|pakbonnummer|
        pakbon|pakbonnr|btw nummer|btw nr|btwnr|btw id|kvk|kvk nr|kvk nummer|rekeningnummer|rekening nr|
        offertenummer|offerte|projectnummer|contractnummer|telefoon|pagina|betalingskenmerk|artikelnr|
        referentie|inkoopordernummer|ondernemingsnummer|werkbonnummer|lidnummer|kenmerk|zendingnummer|
        no de pedido|n de pedido|no pedido|n pedido|pedido no|pedido n|pedido|su pedido|numero de pedido|
        orden de compra|no cliente|n cliente|no de cliente|n de cliente|numero de cliente|codigo cliente|
        codigo de cliente|cod cliente|cliente no|albaran no|albaran n|albaran|no de albaran|n de albaran|
        no albaran|n albaran|presupuesto|presupuesto no|nif|cif|nif cif|dni|rfc|nit|rut|cuit|telefono|tfno|tlf|
        movil|cuenta|no de cuenta|cuenta bancaria|referencia|su referencia|expediente|contrato|no de contrato|
        registro mercantil|no contrato|n contrato|cups|referencia catastral|partita iva|p iva|codice fiscale|
        ordine n|codice cliente|cliente n|ddt n|nipc|contribuinte|cnpj|订单号|订单编号|合同编号|合同号|
        采购订单号|采购单号|客户编号|客户代码|客户号|送货单号|送货单|纳税人识别号|统一社会信用代码|税号|识别号|
        电话|传真|手机|账号|银行账号|开户行及账号|开户行|发票代码|机器编号|校验码|运单号|项目编号|流水号|交易号|
        参考号|货号|邮编|地址电话|密码区|订单|帐号|登記番号|注文番号|電話|提单号|箱号|报价单号|户号|用户编号
    """,
    ("total", STRONG): """
        grand total|total due|amount due|balance due|total amount due|total incl vat|total including vat|
        total inc vat|total incl tax|total including tax|total inc tax|invoice total|total amount|total payable|
        amount payable|total to pay|amount to pay|total price|total invoice amount|total invoice value|
        total invoice|total gross|gross total|gross amount|gross|balance payable|please pay|
        total amount payable|total incl gst|total inc gst|total including gst|net payable|total charges|
        total value|total due now|total with tax|total with vat|total balance due|pay this amount|
        invoice amount|total incl|order total|final total|invoice value|total after tax|total cost|new charges|
        total new charges|total current charges|amount charged|credit total|total credit|charged|payable amount|
        total owed|amount owing|amount owed|total sum|sum total|total inclusive of vat|to pay|
        total invoice amount incl vat|total amount incl vat|amount incl vat|amount including vat|
        total amount including vat|total vat incl|invoice grand total|total inclusive|
        total amount due and payable|now due|bill total|gesamtbetrag|rechnungsbetrag|gesamtsumme|bruttobetrag|
        endbetrag|zu zahlen|summe brutto|zahlbetrag|rechnungssumme|bruttosumme|gesamtbetrag brutto|
        gesamt brutto|brutto|brutto gesamt|endsumme|zu zahlender betrag|zu zahlender gesamtbetrag|
        zahlungsbetrag|rechnungsendbetrag|gesamtbetrag inkl mwst|gesamt inkl mwst|summe inkl mwst|
        betrag inkl mwst|total inkl mwst|zu bezahlen|rechnungstotal|gesamtbetrag inkl ust|
        rechnungsbetrag brutto|total brutto|gesamtrechnungsbetrag|zu uberweisender betrag|uberweisungsbetrag|
        falliger betrag|offener betrag|gutschriftsbetrag|gutschriftbetrag|gesamt inkl ust|
        rechnungsbetrag inkl mwst|inkl mwst|gesamtpreis inkl mwst|gesamtpreis brutto|summe inkl ust|
        abrechnungsbetrag|betrag brutto|fakturabetrag|total inkl|bruttoendbetrag|bruttorechnungsbetrag|
        nachzahlung|total rechnung|gesamtforderung|total ttc|net a payer|montant ttc|
        total a payer|montant total ttc|a payer|montant total|montant net a payer|net a payer ttc|total general|
        montant a payer|total facture|montant de la facture|total toutes taxes comprises|ttc|prix total ttc|
        net a regler|total a regler|montant total a payer|solde a payer|somme a payer|total net a payer|
        montant facture|total du|montant toutes taxes comprises|total net ttc|montant du|reste a payer|
        total tvac|tvac|total de la facture|total tva comprise|total tva incluse|total avec tva|totaal incl btw|
        te betalen|totaalbedrag|factuurbedrag|totaal te voldoen|te voldoen|totaal inclusief btw|
        totaal te betalen|te betalen bedrag|totaal factuur|totaalbedrag incl btw|bedrag incl btw|totaal incl|
        eindtotaal|factuurtotaal|te ontvangen|totaalprijs|nog te betalen|totaal bedrag|
        totaal inclusief|bedrag inclusief btw|totale prijs|totaal bedrag incl btw|te voldoen bedrag|
        openstaand bedrag|bruto|brutobedrag|totaal bruto|factuur totaal|total factura|importe total|
        total a pagar|total con iva|total iva incluido|total con impuestos|a pagar|importe a pagar|
        total importe|importe total factura|liquido a percibir|total euros|monto total|
        total neto a pagar|importe factura|total de la factura|suma total|total iva incl|importe de la factura|
        liquido a pagar|importe liquido|importe total con iva|total con i v a|importe bruto|total bruto|
        total bruto a pagar|totale fattura|totale da pagare|totale documento|importo totale|netto a pagare|
        totale complessivo|totale ivato|total da fatura|valor total|total geral|价税合计|价税合计小写|
        价税合计大写|总计|应付总额|总金额|合计含税|应付金额|含税金额|含税合计|合计应付|发票总额|应付款|应付合计|
        总价|實付金額|应收金额|实付金额|总额|本期应付|合计总额|小写|金额总计|價稅合計|總計|應付金額|総計|
        請求金額|ご請求金額|税込合計|合計金額|お支払金額|发票金额|含税总价|含税总额|总计金额|
        订单总额|付款金额|应付总金额|含税总金额
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
        gesamt ohne mwst|netto summe|positionssumme|warensumme|gesamt exkl mwst|summe exkl mwst|
        total ohne mwst|bemessungsgrundlage|gesamtsumme netto|summe positionen|nettopreis|nettoentgelt|entgelt|
        warenwert netto|total ht|montant ht|sous total|total hors taxes|net ht|montant hors taxes|
        total net ht|base ht|total hors tva|montant net|sous total ht|total htva|htva|ht|base imposable|
        total brut ht|brut ht|montant net ht|total marchandises|base tva|total hors taxe|net commercial|
        montant total ht|total ht net|hors tva|subtotaal|totaal excl btw|bedrag excl btw|totaal exclusief btw|
        totaal excl|totaal netto|nettobedrag|exclusief btw|netto bedrag|subtotaal excl btw|bedrag exclusief btw|
        goederenbedrag|maatstaf|grondslag|excl btw|tussentotaal|totaal goederen|base imponible|bases|new charges|importe neto|
        total sin iva|base|total neto|suma|total bruto sin iva|neto|importe sin iva|total antes de impuestos|
        subtotal sin iva|base i v a|importe base|total bases|total base imponible|bases|new charges|suma y sigue|bruto sin iva|
        bases imponibles|imponibile|totale imponibile|totale netto|base tributavel|valor liquido|金额合计|
        合计金额|不含税金额|小计|未税金额|不含税合计|净额|税前金额|小計|未稅金額|税抜|不含税总额|不含税价|
        商品金额|货款|不含税总价
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
    ("rate", STRONG): """
        vat rate|tax rate|vat %|tax %|mwst satz|steuersatz|ust satz|mwst %|ust %|taux tva|taux|taux de tva|
        tva %|btw %|btw tarief|tipo iva|iva %|aliquota|税率|征收率|exchange rate|rate of exchange|wechselkurs|
        汇率|btw percentage|tipo de iva|taux de change|wisselkoers|tipo de cambio|kurs
    """,
    ("other_amount", STRONG): """
        amount paid|payments received|carried forward|brought forward|ubertrag|a reporter|report|suma anterior|paid to date|payment received|paid|less paid|total paid|deposit|
        deposit paid|less deposit|payments|advance payment|down payment|previous balance|balance forward|
        prior balance|opening balance|balance brought forward|last bill|credit applied|credits|discount|
        less discount|trade discount|shipping|freight|shipping handling|shipping and handling|carriage|postage|
        delivery charge|handling|insurance|customs|duty|rounding|tip|gratuity|change|cash|card|visa|mastercard|
        tendered|cash tendered|change due|late fee|interest|balance|you save|savings|credit limit|
        minimum payment|unit price|retention|surcharge|packing|service charge|exchange rate|fx rate|equivalent|
        weight|gross weight|net weight|total weight|volume|total qty|total quantity|total items|total pieces|
        total packages|points|loyalty|overdue|amount overdue|prepaid|gift card|store credit|account balance|
        remaining balance|declared value|total hours|total units|early payment discount|shipping cost|
        delivery cost|courier|last payment|amount received|previous amount due|coupon|promotion|current balance|
        fuel surcharge|customs value|promo|payment|cash discount|share capital|total discount|total savings|
        total shipping|total freight|bereits gezahlt|anzahlung|rabatt|abzgl rabatt|versandkosten|fracht|porto|
        porto und verpackung|versand|skonto|abschlag|abschlagszahlung|abzuglich anzahlung|
        geleistete anzahlungen|vorauszahlung|saldo|saldovortrag|gegeben|ruckgeld|bar|ec karte|wechselgeld|
        trinkgeld|mahngebuhr|zinsen|nachlass|frachtkosten|verpackung|lieferkosten|sonderrabatt|gesamtrabatt|
        rundung|bereits bezahlt|geleistete zahlungen|abschlage|guthaben|kartenzahlung|gewicht|gesamtgewicht|
        bruttogewicht|nettogewicht|gesamtmenge|abzgl anzahlung|alter saldo|stammkapital|grundkapital|
        skontobetrag|zahlung|transportkosten|versand und verpackung|versandkostenpauschale|abzuglich|
        gesamtstunden|rundungsdifferenz|skontofahiger betrag|gegenwert|bruttogewicht kg|einzelpreis|remise|
        rabais|frais de port|transport|livraison|acompte|acompte verse|deja regle|deja paye|escompte|port|
        frais de livraison|solde precedent|avance|montant regle|especes|carte bancaire|cb|rendu|arrhes|
        frais d expedition|poids|poids total|timbre|frais de transport|indemnite forfaitaire|penalites|
        emballage|arrondi|acomptes|ristourne|eco participation|remise globale|ancien solde|reglement|
        total remise|capital social|acompte recu|frais|frais de dossier|au capital de|poids brut|poids net|
        korting|verzendkosten|vracht|reeds betaald|aanbetaling|betaald|reeds voldaan|vrachtkosten|voorschot|
        wisselgeld|contant|pin|gewicht totaal|administratiekosten|vorig saldo|bezorgkosten|leveringskosten|
        afronding|totaal korting|statiegeld|betalingskorting|kredietbeperking|porti|vooruitbetaald|descuento|
        gastos de envio|portes|anticipo|pagado|dto|envio|transporte|entregado|cambio|efectivo|tarjeta|
        saldo anterior|retencion|irpf|retencion irpf|a cuenta|recargo|pronto pago|redondeo|seguro|peso|
        peso total|provision de fondos|flete|dto pp|entrega a cuenta|ya pagado|importe pagado|
        recargo equivalencia|gastos|descuento total|propina|sconto|spese di spedizione|acconto|trasporto|
        desconto|frete|折扣|运费|已付款|定金|已付金额|预付款|优惠|押金|找零|实收|上期余额|余额|手续费|保险费|
        总数量|总重量|已付|预付|抵扣|減免|送料|折扣金额|毛重|净重|包装费|订金|优惠金额|注册资本|服务费|件数
    """,
    ("column", STRONG): """
        description|item|product|details|particulars|article|service|description of goods|item description|
        goods|activity|bezeichnung|beschreibung|artikel|leistung|artikelbezeichnung|produkt|warenbezeichnung|
        leistungsbeschreibung|text|ware|tatigkeit|designation|libelle|prestation|produit|articles|
        designation des produits|nature|omschrijving|dienst|beschrijving|artikelomschrijving|werkzaamheden|
        descripcion|concepto|articulo|producto|detalle|servicio|descrizione|descricao|货物或应税劳务名称|
        货物或应税劳务服务名称|项目名称|品名|商品描述|商品名称|货物名称|名称|服务名称|摘要|描述|品名及规格|
        产品名称|内容|品目|费用项目|规格型号|规格|型号|单位
    """,
    ("quantity", STRONG): """
        qty|quantity|units|days|tage|jours|dagen|dias|hours|hrs|pcs|no of units|menge|anzahl|stuck|stk|std|stunden|quantite|qte|nombre|
        aantal|uren|stuks|cantidad|cant|uds|unidades|horas|quantita|qta|qtd|quantidade|数量|數量|unit|einheit|
        unite|eenheid|unidad|me|件数|工时|qty hrs
    """,
    ("price", STRONG): """
        unit price|price|rate|price each|unit cost|price per unit|each|unit rate|hourly rate|item price|
        list price|cost|einzelpreis|preis|e preis|stuckpreis|ep|preis pro einheit|einheitspreis|stundensatz|
        einzel|preis einheit|prix unitaire|pu ht|pu|prix|p u|p u ht|prix unitaire ht|prix u|prix unit|tarif|
        prix ht|prijs|stukprijs|tarief|eenheidsprijs|prijs per stuk|per stuk|uurtarief|prijs per eenheid|
        prijs p st|precio|precio unitario|p unit|precio ud|p unitario|precio unit|pvp|prezzo|prezzo unitario|
        preco unitario|单价|單價|単価|含税单价|不含税单价
    """,
    ("amount", STRONG): """
        line total|amount net|net price total|extended price|ext price|extension|ext amount|gesamtpreis|g preis|
        gp|regeltotaal|prix total|prix total ht|importe linea|金额|金額|total price|line amount|positionsbetrag|
        zeilensumme|subtotal line|ext
    """,
    ("supplier", STRONG): """
        from|seller|supplier|vendor|billed by|sold by|shipper|exporter|issued by|pay to|remit to|payee|
        beneficiary|service provider|absender|lieferant|verkaufer|rechnungssteller|leistungserbringer|
        zahlungsempfanger|kontoinhaber|aussteller|empfanger zahlung|emetteur|fournisseur|vendeur|prestataire|
        beneficiaire|expediteur|titulaire|van|leverancier|verkoper|afzender|ten name van|tnv|emisor|proveedor|
        vendedor|expedidor|titular|beneficiario|razon social|fornitore|cedente|fornecedor|emitente|销售方|
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
    (
        "incoterm",
        STRONG,
    ): """incoterm|incoterms|incoterms 2020|incoterms 2010|trade terms|delivery terms|terms of delivery|
        lieferbedingungen|lieferbedingung|conditions de livraison|leveringsvoorwaarden|condiciones de entrega|贸易条款|贸易术语|
        贸易方式|价格条款|交货条件|成交方式|交货条款""",
    (
        "hs",
        STRONG,
    ): """hs code|hs codes|hs no|hs number|tariff code|tariff no|tariff number|customs code|commodity code|hts code|hts|hs|
        customs tariff no|customs tariff number|harmonised code|harmonized code|cn code|taric|hsn|hsn code|hs tariff|
        zolltarifnummer|zolltarif nr|warennummer|zolltarifnr|statistische warennummer|warentarifnummer|
        code sh|code douanier|nomenclature douaniere|code nc|no tarifaire|numero tarifaire|
        goederencode|gn code|statistieknummer|hs code goederen|tariefcode|
        codigo arancelario|partida arancelaria|codigo hs|codigo taric|posicion arancelaria|
        海关编码|商品编码|税则号列|税则号|hs编码|商品编号|hs编号|关税编码|税号hs""",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """What a label means: its kind and how surely."""

    kind: str
    strength: float


def _build() -> dict[str, Phrase]:
    table: dict[str, Phrase] = {}
    for (kind, strength), block in _PHRASES.items():
        for raw in block.split("|"):
            text = " ".join(raw.split())
            if text:
                table.setdefault(compacted(text), Phrase(kind=kind, strength=strength))
    return table


PHRASES: dict[str, Phrase] = _build()
"""Compact text of a label to its meaning. The first listing of a phrase wins, so kinds listed first have priority."""

LONGEST = max(len(phrase) for phrase in PHRASES)
