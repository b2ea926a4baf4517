"""Cities with the state or country they are usually taken to be in, and the names that money goes by."""

import re

_CITIES: dict[str, str] = {
    "AL": "Birmingham|Montgomery|Huntsville|Mobile",
    "AK": "Anchorage|Fairbanks|Juneau",
    "AZ": "Phoenix|Tucson|Mesa|Scottsdale|Tempe|Chandler|Flagstaff|Sedona",
    "AR": "Little Rock",
    "CA": "Los Angeles|San Francisco|San Diego|San Jose|Sacramento|Fresno|Oakland|Berkeley|Long Beach"
    "|Bakersfield|Anaheim"
    "|Santa Ana|Riverside|Stockton|Irvine|Chula Vista|Fremont|Santa Clarita|San Bernardino|Modesto|Fontana"
    "|Huntington Beach|Santa Rosa|Palo Alto|Mountain View|Sunnyvale|Cupertino|Santa Clara|Santa Monica|Pasadena"
    "|Hayward|Walnut Creek|Napa|Petaluma|Novato|Vacaville|Vallejo|Pleasanton|Livermore"
    "|San Mateo|Redwood City|Menlo Park|Milpitas|Gilroy|Morgan Hill|Los Gatos|Saratoga|Santa Cruz"
    "|Monterey"
    "|Mill Valley|San Rafael|Sausalito|Tiburon|Corte Madera|Larkspur|Fairfax|Emeryville|Alameda"
    "|El Cerrito"
    "|Pittsburg|Antioch|Brentwood|Danville|San Ramon|Orinda|Moraga|Martinez|Pinole"
    "|Union City"
    "|Castro Valley|San Leandro|Daly City|South San Francisco|San Bruno|Burlingame|Millbrae"
    "|Foster City|Pacifica"
    "|Half Moon Bay|Los Altos|Beverly Hills|Burbank|Malibu|Palm Springs|Santa Barbara|Anaheim|Sonoma|Healdsburg"
    "|American Canyon|Benicia|Rohnert Park|Belvedere|Suisun City|Cloverdale|Sebastopol"
    "|Portola Valley|Woodside",
    "CO": "Denver|Colorado Springs|Boulder|Fort Collins|Aspen|Vail",
    "CT": "Hartford|New Haven|Stamford|Bridgeport",
    "DE": "Wilmington|Dover",
    "DC": "Washington D.C.|Washington DC|Washington|Washington, D.C.|Washington, DC",
    "FL": "Miami|Orlando|Tampa|Jacksonville|Fort Lauderdale|Tallahassee|St. Petersburg|Key West|Naples|Hialeah",
    "GA": "Atlanta|Savannah|Augusta",
    "HI": "Honolulu|Hilo|Maui",
    "ID": "Boise",
    "IL": "Chicago|Naperville",
    "IN": "Indianapolis|Fort Wayne",
    "IA": "Des Moines|Cedar Rapids|Iowa City",
    "KS": "Wichita|Topeka|Overland Park",
    "KY": "Louisville|Lexington",
    "LA": "New Orleans|Baton Rouge|Shreveport",
    "ME": "Portland, Maine|Bangor",
    "MD": "Baltimore|Annapolis|Bethesda|Rockville",
    "MA": "Boston|Cambridge|Worcester|Salem|Somerville",
    "MI": "Detroit|Ann Arbor|Grand Rapids|Lansing",
    "MN": "Minneapolis|St. Paul|Saint Paul|Duluth",
    "MS": "Jackson|Biloxi",
    "MO": "Kansas City|St. Louis|Saint Louis",
    "MT": "Billings|Missoula|Bozeman",
    "NE": "Omaha|Lincoln",
    "NV": "Las Vegas|Reno|Henderson|Carson City",
    "NH": "Manchester, New Hampshire|Nashua",
    "NJ": "Jersey City|Trenton|Princeton|Hoboken|Atlantic City",
    "NM": "Albuquerque|Santa Fe",
    "NY": "New York|New York City|NYC|Buffalo|Syracuse|Ithaca|Brooklyn|Manhattan|Queens|Yonkers",
    "NC": "Charlotte|Raleigh|Durham|Greensboro|Asheville",
    "ND": "Fargo|Bismarck",
    "OH": "Columbus|Cleveland|Cincinnati|Toledo|Akron|Dayton",
    "OK": "Oklahoma City|Tulsa",
    "OR": "Portland|Eugene|Bend",
    "PA": "Philadelphia|Pittsburgh|Harrisburg|Allentown",
    "RI": "Providence|Newport",
    "SC": "Charleston|Myrtle Beach|Greenville",
    "SD": "Sioux Falls|Rapid City",
    "TN": "Nashville|Memphis|Knoxville|Chattanooga",
    "TX": "Houston|Dallas|Austin|San Antonio|Fort Worth|El Paso|Arlington|Plano|Corpus Christi|Lubbock|Galveston",
    "UT": "Salt Lake City|Provo|Park City|Moab",
    "VT": "Burlington|Montpelier",
    "VA": "Richmond, Virginia|Virginia Beach|Norfolk|Alexandria|Charlottesville",
    "WA": "Seattle|Spokane|Tacoma|Bellevue|Redmond|Olympia|Everett",
    "WV": "Morgantown",
    "WI": "Milwaukee|Madison|Green Bay",
    "WY": "Cheyenne|Jackson Hole",
    "UK": "London|Manchester|Liverpool|Birmingham, England|Leeds|Oxford|Bristol",
    "France": "Paris|Lyon|Marseille|Nice|Toulouse|Bordeaux",
    "Germany": "Berlin|Munich|Hamburg|Frankfurt|Cologne|Stuttgart",
    "Italy": "Rome|Milan|Venice|Florence|Turin",
    "Spain": "Madrid|Barcelona|Valencia|Seville",
    "Japan": "Tokyo|Kyoto|Osaka|Sapporo|Nagoya",
    "China": "Beijing|Shanghai|Guangzhou|Shenzhen|Chengdu|Hangzhou|Wuhan",
    "India": "Mumbai|Delhi|New Delhi|Bangalore|Chennai|Kolkata|Hyderabad|Pune",
    "Australia": "Sydney|Melbourne|Brisbane|Perth|Adelaide|Canberra",
    "Canada": "Toronto|Vancouver|Montreal|Ottawa|Calgary|Quebec City",
    "South Korea": "Seoul|Busan",
    "Thailand": "Bangkok|Chiang Mai|Phuket",
    "Malaysia": "Kuala Lumpur",
    "Indonesia": "Jakarta|Bali",
    "UAE": "Dubai|Abu Dhabi",
    "Netherlands": "Amsterdam|Rotterdam",
    "Ireland": "Dublin",
    "Portugal": "Lisbon|Porto",
    "Greece": "Athens",
    "Turkey": "Istanbul|Ankara",
    "Egypt": "Cairo",
    "Brazil": "Rio de Janeiro|Sao Paulo|São Paulo",
    "Mexico": "Mexico City|Cancun|Guadalajara",
    "Argentina": "Buenos Aires",
    "Austria": "Vienna",
    "Switzerland": "Zurich|Geneva|Basel",
    "Sweden": "Stockholm",
    "Norway": "Oslo",
    "Denmark": "Copenhagen",
    "Finland": "Helsinki",
    "Belgium": "Brussels",
    "Poland": "Warsaw|Krakow",
    "Russia": "Moscow|Saint Petersburg",
    "Kenya": "Nairobi",
    "Vietnam": "Hanoi|Ha Noi|Ho Chi Minh City|Da Nang|Hue|Can Tho|Hai Phong|Nha Trang|Lang Son|Quang Ninh",
    "Israel": "Tel Aviv|Jerusalem|Haifa",
    "Iceland": "Reykjavik",
    "Hungary": "Budapest",
    "Czech Republic": "Prague",
    "Ukraine": "Kyiv|Kiev",
    "Singapore": "Singapore",
    "New Zealand": "Auckland|Wellington",
    "South Africa": "Cape Town|Johannesburg",
    "Nigeria": "Lagos|Abuja",
    "Peru": "Lima",
    "Chile": "Santiago",
    "Colombia": "Bogota|Medellin",
    "Saudi Arabia": "Riyadh|Jeddah",
    "Pakistan": "Karachi|Lahore|Islamabad",
    "Scotland": "Edinburgh|Glasgow",
    "Taiwan": "Taipei|Taichung|Kaohsiung",
    "Philippines": "Manila|Cebu",
}
_SHORT_NAMES = {
    "nyc": "New York",
    "new york city": "New York",
    "la": "Los Angeles",
    "l.a.": "Los Angeles",
    "san fran": "San Francisco",
    "sf": "San Francisco",
    "vegas": "Las Vegas",
    "philly": "Philadelphia",
    "washington dc": "Washington",
    "washington d.c.": "Washington",
    "washington, d.c.": "Washington",
    "washington, dc": "Washington",
}
STATES: dict[str, str] = {
    "alabama": "AL", "alaska": "AK", "arizona": "AZ", "arkansas": "AR", "california": "CA", "colorado": "CO",
    "connecticut": "CT", "delaware": "DE", "florida": "FL", "georgia": "GA", "hawaii": "HI", "idaho": "ID",
    "illinois": "IL", "indiana": "IN", "iowa": "IA", "kansas": "KS", "kentucky": "KY", "louisiana": "LA",
    "maine": "ME", "maryland": "MD", "massachusetts": "MA", "michigan": "MI", "minnesota": "MN",
    "mississippi": "MS", "missouri": "MO", "montana": "MT", "nebraska": "NE", "nevada": "NV",
    "new hampshire": "NH", "new jersey": "NJ", "new mexico": "NM", "new york": "NY", "north carolina": "NC",
    "north dakota": "ND", "ohio": "OH", "oklahoma": "OK", "oregon": "OR", "pennsylvania": "PA",
    "rhode island": "RI", "south carolina": "SC", "south dakota": "SD", "tennessee": "TN", "texas": "TX",
    "utah": "UT", "vermont": "VT", "virginia": "VA", "washington": "WA", "west virginia": "WV",
    "wisconsin": "WI", "wyoming": "WY", "district of columbia": "DC",
}  # fmt: skip
_STATE_NAMES = {code: " ".join(word.capitalize() for word in name.split()) for name, code in STATES.items()}
_BY_CITY: dict[str, tuple[str, str]] = {}
for _region, _names in _CITIES.items():
    for _name in _names.split("|"):
        _BY_CITY.setdefault(_name.lower(), (_name, _region))
for _short, _full in _SHORT_NAMES.items():
    _BY_CITY[_short] = (_full, _BY_CITY[_full.lower()][1])
_PAIR = re.compile(r"^(?P<city>[^,]+?)(?:\s*,\s*|\s+)(?P<region>[A-Z]{2}|[A-Za-z][A-Za-z .]{3,})\.?$")

CURRENCIES: dict[str, str] = {
    "dollar": "USD", "us dollar": "USD", "u.s. dollar": "USD", "american dollar": "USD", "usd": "USD", "$": "USD",
    "euro": "EUR", "€": "EUR", "pound": "GBP", "british pound": "GBP", "pound sterling": "GBP",
    "british pound sterling": "GBP", "£": "GBP", "yen": "JPY", "japanese yen": "JPY", "yuan": "CNY",
    "chinese yuan": "CNY", "renminbi": "CNY", "rupee": "INR", "indian rupee": "INR", "won": "KRW",
    "korean won": "KRW", "canadian dollar": "CAD", "australian dollar": "AUD", "swiss franc": "CHF",
    "franc": "CHF", "mexican peso": "MXN", "ruble": "RUB", "bitcoin": "BTC", "ethereum": "ETH",
}  # fmt: skip


def city_and_region(text: str, *, long_states: bool = False) -> str | None:
    """A city in words as "City, Region"; None when neither the text nor the table says the region.

    Args:
        text: "New York", "Oakland CA" or "Paris, France".
        long_states: Write the states of the USA in full instead of with two letters.
    """
    text = " ".join(text.split()).strip(" .,")
    pair = _PAIR.match(text)
    region: str | None
    if text.lower() in _BY_CITY:
        city, region = _BY_CITY[text.lower()]
    elif pair and (pair["region"] in _STATE_NAMES or pair["region"].lower() in STATES or "," in text):
        city, region = pair["city"], pair["region"].strip()
        known = _BY_CITY.get(city.lower())
        city = known[0] if known else city
        region = STATES.get(region.lower(), region)
    else:
        return None
    if long_states:
        region = _STATE_NAMES.get(region, region)
    return f"{_capitalised(city)}, {region}"


def currency(text: str) -> str | None:
    """The three-letter code of a currency in words; None when it is not known."""
    plain = text.strip().lower()
    for form in (plain, plain.removesuffix("s"), plain.replace("dollars", "dollar")):
        if form in CURRENCIES:
            return CURRENCIES[form]
    return plain.upper() if plain.upper() in CURRENCIES.values() else None


_COUNTRIES = {
    "united states": "US", "united states of america": "US", "usa": "US", "us": "US", "u.s.": "US",
    "america": "US",
    "united kingdom": "GB", "uk": "GB", "great britain": "GB", "england": "GB", "britain": "GB", "germany": "DE",
    "france": "FR", "spain": "ES", "italy": "IT", "china": "CN", "japan": "JP", "india": "IN", "canada": "CA",
    "mexico": "MX", "brazil": "BR", "australia": "AU", "russia": "RU", "south korea": "KR", "korea": "KR",
    "netherlands": "NL", "belgium": "BE", "switzerland": "CH", "austria": "AT", "sweden": "SE", "norway": "NO",
    "denmark": "DK", "finland": "FI", "poland": "PL", "portugal": "PT", "greece": "GR", "turkey": "TR",
    "ireland": "IE", "israel": "IL", "egypt": "EG", "south africa": "ZA", "nigeria": "NG", "kenya": "KE",
    "argentina": "AR", "chile": "CL", "colombia": "CO", "peru": "PE", "thailand": "TH", "vietnam": "VN",
    "indonesia": "ID", "malaysia": "MY", "singapore": "SG", "philippines": "PH", "new zealand": "NZ",
    "taiwan": "TW",
}  # fmt: skip


def country_code(text: str) -> str | None:
    """The two-letter code (ISO 3166-1) of a country in words; None when it is not known."""
    return _COUNTRIES.get(" ".join(text.lower().split()))


def _capitalised(city: str) -> str:
    return (
        city if any(letter.isupper() for letter in city) else " ".join(word.capitalize() for word in city.split())
    )
