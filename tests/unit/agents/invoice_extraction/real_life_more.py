"""A second set of documents from memory, written after the extractor and first used to measure it."""

TELECOM = """
FunkNetz Deutschland GmbH, 53227 Bonn                                   Ihre Rechnung für Februar 2026

Herrn                                                                   Kundennummer        4400981276
Jonas Weiß                                                              Rechnungsnummer     88 2210 0456 1
Am Hang 12                                                              Buchungskonto       7003124410
35037 Marburg                                                           Datum               02.03.2026

Zusammenfassung                                                                             Netto in Euro
Monatliche Beträge                                                                                  33,57
Einmalige Beträge                                                                                    0,00
Summe                                                                                               33,57
Umsatzsteuer 19 %                                                                                    6,38
Rechnungsbetrag                                                                                     39,95

Der Rechnungsbetrag wird nicht vor dem siebten Tag nach Zugang der Rechnung von Ihrem Konto
DE12 5001 0517 0648 4898 90 abgebucht. Gläubiger-ID DE93ZZZ00000078611, Mandat 4400981276-1.
"""

HOTEL = """
HOTEL MIRADOR
Passeig de Gracia 110, Barcelona            Tax ID: ESB60123456

Guest       Ms. Hannah Price                Invoice No.   45.221
Room        412                             Date          05-03-2026
Arrival     02-03-2026                      Folio         118830
Departure   05-03-2026                      Cashier       MARTA

Date          Description                   Charges EUR       Credits EUR
02-03-2026    Room charge                        120.00
03-03-2026    Room charge                        120.00
04-03-2026    Room charge                        120.00
04-03-2026    Minibar                              8.50
05-03-2026    Visa xx4412                                          368.50

                              Total              368.50            368.50
                              Balance              0.00
VAT 10% included: 33.50        Net: 335.00
"""

LAW_FIRM = """
Whitmore Hale LLP
Solicitors
1 Temple Row, Birmingham B2 5HG                                   Our ref: JH/2291/KLM
                                                                  Date: 3rd March 2026
Dunmore Estates Ltd
4 Castle Gate, Warwick

INVOICE NO: 60418
Re: Lease of Unit 7 - fees for the period to 28 February 2026

Professional charges                                                        £1,200.00
Disbursements: Land Registry fee                                               £35.00
VAT at 20% on £1,200.00                                                       £240.00
TOTAL DUE                                                                   £1,475.00

Client account: sort code 40-11-60, account 71234567. Interest at 8% runs from 2 April 2026.
"""

FRENCH_ENERGY = """
Lumière Énergie                                         Votre facture d'électricité
Service clients 09 69 32 15 15
                                                        Facture n° 10 123 456 789
Mme Claire Fontaine                                     du 12/03/2026
8 rue Pasteur                                           N° client : 6 004 112 233
21000 Dijon                                             Point de livraison : 14 2563 2589 6321

Abonnement HT                                                            14,52 €
Consommation HT                                                          55,58 €
Total HT                                                                 70,10 €
TVA à 20,00 %                                                            14,02 €
Total TTC                                                                84,12 €
Montant à payer                                                          84,12 €
Montant prélevé le 27/03/2026
"""

SPANISH_PHONE = """
Telefónica del Sur S.A.U.  CIF A82018474
Gran Vía 28, 28013 Madrid

Nº Factura: TA6C90012345          Titular: Carmen Ortega Ruiz
Fecha de emisión: 1 de marzo de 2026          NIF: 12345678Z
Periodo de facturación: 1 feb. a 28 feb. 2026

Cuotas                                     37,44 €
Base imponible                             37,44 €
IVA 21%                                     7,86 €
Total a pagar                              45,30 €
Fecha de cargo: 10/03/2026
"""

CHINA_EXPORT = """
                    NINGBO HAIYUE IMPORT & EXPORT CO., LTD.
                    宁波海悦进出口有限公司
                         COMMERCIAL INVOICE

TO: Gartenwelt Handels GmbH                      INVOICE NO.: HY2026-0319
    Industriepark 5, 28195 Bremen                DATE: MAR. 19, 2026
    Germany                                      S/C NO.: HYSC-26011
FROM: NINGBO, CHINA   TO: BREMERHAVEN, GERMANY   L/C NO.: T/T

MARKS      DESCRIPTION OF GOODS          QUANTITY      UNIT PRICE      AMOUNT
N/M                                                    FOB NINGBO
           GARDEN HOSE 20M               1,000 PCS     USD 4.20        USD 4,200.00
           SPRAY NOZZLE                  3,000 PCS     USD 2.70        USD 8,100.00
           TOTAL:                        4,000 PCS                     USD 12,300.00

SAY US DOLLARS TWELVE THOUSAND THREE HUNDRED ONLY.
"""

ITALIAN = """
Rossi Impianti S.r.l.                              Spett.le
Via Garibaldi 18, 37121 Verona                     Condominio Aurora
P.IVA 01234560237                                  Corso Milano 4, 37138 Verona

Fattura n. 12/A del 03/02/2026

Descrizione                          Quantità     Prezzo       Importo
Manutenzione caldaia                        1   1.000,00      1.000,00

Imponibile                                                   1.000,00
IVA 22%                                                         220,00
Totale documento                                           € 1.220,00
Scadenza 05/03/2026
"""

MODERN_US = """
INVOICE                                                        INV0023

FROM                               BILL TO                     DATE
Maple Design Studio                Hudson Coffee Roasters      Mar 5, 2026
41 Elm Street                      210 River Rd
Portland, OR 97205                 Albany, NY 12207            DUE
maple@design.example                                           On Receipt

                                                               BALANCE DUE
                                                               USD $1,250.00

DESCRIPTION                             RATE        QTY        AMOUNT
Brand identity                     $1,250.00          1     $1,250.00

                                   TOTAL                    $1,250.00
                                   BALANCE DUE          USD $1,250.00
"""

AUSTRIAN = """
Tischlerei Huber e.U.
Salzburger Straße 40, 4820 Bad Ischl
UID ATU12345678

Familie Gruber
Traunkai 3, 4820 Bad Ischl

Rechnung Nr.: 2026/15
Rechnungs- und Lieferdatum: 15.02.2026

Einbauschrank nach Maß                                  € 1.000,-
20% USt                                                   € 200,-
Gesamtbetrag                                            € 1.200,-
Zahlbar binnen 10 Tagen netto Kassa.
"""

RIDE = """
Ride receipt
Thanks for riding, Sam
March 2, 2026 9:14 PM

Total                        $23.45
Trip fare                    $18.20
Booking fee                   $2.75
Tip                           $2.50

Visa ••••8841                $23.45
San Francisco, CA 94110
"""

POLISH_IN_ENGLISH = """
Baltic Components Sp. z o.o.                              Invoice (Faktura VAT) 118/03/2026
ul. Morska 9, 81-323 Gdynia, Poland                       Issue date: 2026-03-11
NIP PL5861234567                                          Sale date: 2026-03-10
                                                          Due: 2026-03-25
Buyer: Nordic Assembly AB, Göteborg

No    Description          Qty    Net price    Net value    VAT    VAT amount    Gross value
1     Connector M12        200         4.10       820.00    23%        188.60       1,008.60
2     Cable 2 m            100         6.00       600.00    23%        138.00         738.00
                                    Total       1,420.00               326.60       1,746.60
To pay: 1,746.60 PLN
"""

DOCUMENTS = {
    "telecom": (
        TELECOM,
        {"number": "88 2210 0456 1", "date": "2026-03-02", "currency": "EUR", "total": "39.95", "tax": "6.38"},
    ),
    "hotel": (HOTEL, {"number": "45.221", "date": "2026-03-05", "currency": "EUR", "total": "368.50"}),
    "law_firm": (
        LAW_FIRM,
        {"number": "60418", "date": "2026-03-03", "currency": "GBP", "total": "1475.00", "tax": "240.00"},
    ),
    "french_energy": (
        FRENCH_ENERGY,
        {"number": "10 123 456 789", "date": "2026-03-12", "currency": "EUR", "total": "84.12", "tax": "14.02"},
    ),
    "spanish_phone": (
        SPANISH_PHONE,
        {"number": "TA6C90012345", "date": "2026-03-01", "currency": "EUR", "total": "45.30", "tax": "7.86"},
    ),
    "china_export": (
        CHINA_EXPORT,
        {
            "number": "HY2026-0319",
            "date": "2026-03-19",
            "currency": "USD",
            "total": "12300.00",
            "incoterm": "FOB NINGBO",
        },
    ),
    "italian": (
        ITALIAN,
        {
            "number": "12/A",
            "date": "2026-02-03",
            "due_date": "2026-03-05",
            "currency": "EUR",
            "total": "1220.00",
            "tax": "220.00",
        },
    ),
    "modern_us": (MODERN_US, {"number": "INV0023", "date": "2026-03-05", "currency": "USD", "total": "1250.00"}),
    "austrian": (
        AUSTRIAN,
        {"number": "2026/15", "date": "2026-02-15", "currency": "EUR", "total": "1200.00", "tax": "200.00"},
    ),
    "ride": (RIDE, {"number": None, "date": "2026-03-02", "currency": "USD", "total": "23.45"}),
    "polish": (
        POLISH_IN_ENGLISH,
        {
            "number": "118/03/2026",
            "date": "2026-03-11",
            "due_date": "2026-03-25",
            "currency": "PLN",
            "total": "1746.60",
            "tax": "326.60",
        },
    ),
}
