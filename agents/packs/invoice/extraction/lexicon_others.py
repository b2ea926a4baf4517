"""Labels of what is not extracted: other dates, identifiers and amounts, and column heads; see `lexicon`."""

from agents.packs.invoice.extraction.lexicon_fields import STRONG

OTHER_PHRASES: dict[tuple[str, float], str] = {
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
        product code|batch no|lot no|serial|model no|meter no|meter number|supply number|mpan|mprn|tel|
        telephone|phone|fax|mobile|mob|cell|phone no|tel no|page|page no|zip|po box|seller id|vendor no|
        vendor id|supplier no|subscription id|user id|ticket no|case no|file no|matter no|policy no|lease no|
        room no|licence no|license no|permit no|bestellnummer|bestell nr|bestellnr|bestellung nr|bestellung|
        auftragsnummer|auftrags nr|auftragsnr|auftrag|auftrag nr|ihre bestellung|ihr zeichen|ihre referenz|
        ihre nr|kundennummer|kunden nr|kundennr|kd nr|kdnr|kunden no|debitor|debitoren nr|debitorennummer|
        debitor nr|lieferschein nr|lieferscheinnummer|lieferscheinnr|lieferschein|ls nr|angebotsnummer|
        angebot nr|angebots nr|vertragsnummer|vertrags nr|vertragskonto|projektnummer|projekt nr|projekt|
        referenz|referenznummer|referenz nr|ust idnr|ust id nr|ust id|ustid|ustidnr|umsatzsteuer id|
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
    ("rate", STRONG): """
        vat rate|tax rate|vat %|tax %|mwst satz|steuersatz|ust satz|mwst %|ust %|taux tva|taux|taux de tva|
        tva %|btw %|btw tarief|tipo iva|iva %|aliquota|税率|征收率|exchange rate|rate of exchange|wechselkurs|
        汇率|btw percentage|tipo de iva|taux de change|wisselkoers|tipo de cambio|kurs
    """,
    ("other_amount", STRONG): """
        amount paid|payments received|carried forward|brought forward|ubertrag|a reporter|report|suma anterior|
        paid to date|payment received|paid|less paid|total paid|deposit|deposit paid|less deposit|payments|
        advance payment|down payment|previous balance|balance forward|prior balance|opening balance|
        balance brought forward|last bill|credit applied|credits|discount|less discount|trade discount|shipping|
        freight|shipping handling|shipping and handling|carriage|postage|delivery charge|handling|insurance|
        customs|duty|rounding|tip|gratuity|change|cash|card|visa|mastercard|tendered|cash tendered|change due|
        late fee|interest|balance|you save|savings|credit limit|minimum payment|retention|surcharge|packing|
        service charge|fx rate|equivalent|weight|gross weight|net weight|total weight|volume|total qty|
        total quantity|total items|total pieces|total packages|points|loyalty|overdue|amount overdue|prepaid|
        gift card|store credit|account balance|remaining balance|declared value|total hours|total units|
        early payment discount|shipping cost|delivery cost|courier|last payment|amount received|
        previous amount due|coupon|promotion|current balance|fuel surcharge|customs value|promo|payment|
        cash discount|share capital|total discount|total savings|total shipping|total freight|bereits gezahlt|
        anzahlung|rabatt|abzgl rabatt|versandkosten|fracht|porto|porto und verpackung|versand|skonto|abschlag|
        abschlagszahlung|abzuglich anzahlung|geleistete anzahlungen|vorauszahlung|saldo|saldovortrag|gegeben|
        ruckgeld|bar|ec karte|wechselgeld|trinkgeld|mahngebuhr|zinsen|nachlass|frachtkosten|verpackung|
        lieferkosten|sonderrabatt|gesamtrabatt|rundung|bereits bezahlt|geleistete zahlungen|abschlage|guthaben|
        kartenzahlung|gewicht|gesamtgewicht|bruttogewicht|nettogewicht|gesamtmenge|abzgl anzahlung|alter saldo|
        stammkapital|grundkapital|skontobetrag|transportkosten|versand und verpackung|versandkostenpauschale|
        abzuglich|gesamtstunden|rundungsdifferenz|skontofahiger betrag|gegenwert|bruttogewicht kg|remise|rabais|
        frais de port|transport|livraison|acompte|acompte verse|deja regle|deja paye|escompte|port|
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
        总数量|总重量|已付|预付|抵扣|減免|送料|折扣金额|毛重|净重|包装费|订金|优惠金额|注册资本|服务费
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
        qty|quantity|units|days|tage|jours|dagen|dias|hours|hrs|pcs|no of units|menge|anzahl|stuck|stk|std|
        stunden|quantite|qte|nombre|aantal|uren|stuks|cantidad|cant|uds|unidades|horas|quantita|qta|qtd|
        quantidade|数量|數量|unit|einheit|unite|eenheid|unidad|me|件数|工时|qty hrs
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
}
"""Kind and strength to phrases, parted by bars."""
