"""Characters of fonts that show others than their codes say."""

# From A to Z, and from a to z.
GREEK = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ" + "αβχδεφγηιϕκλμνοπθρστυϖωξψζ"
SYMBOL = {
    **{0x22: "∀", 0x24: "∃", 0x27: "∋", 0xA2: "′", 0xA3: "≤", 0xA5: "∞", 0xAB: "↔"},
    **{0xAC: "←", 0xAD: "↑", 0xAE: "→", 0xAF: "↓", 0xB0: "°", 0xB1: "±", 0xB3: "≥"},
    **{0xB4: "×", 0xB5: "∝", 0xB6: "∂", 0xB7: "•", 0xB8: "÷", 0xB9: "≠", 0xBA: "≡"},
    **{0xBB: "≈", 0xC5: "⊕", 0xC7: "∩", 0xC8: "∪", 0xCE: "∈", 0xCF: "∉", 0xD0: "∠"},
    **{0xD1: "∇", 0xD5: "∏", 0xD6: "√", 0xD8: "¬", 0xD9: "∧", 0xDA: "∨", 0xDE: "⇒"},
    **{0xE5: "∑", 0xF2: "∫"},
    **dict(zip([*range(0x41, 0x5B), *range(0x61, 0x7B)], GREEK, strict=True)),
}
WINGDINGS = {
    **{0x28: "☎", 0x2A: "✉", 0x4A: "☺", 0x4C: "☹", 0x6C: "●", 0x6E: "■", 0x6F: "☐"},
    **{0x71: "❑", 0x75: "◆", 0x76: "❖", 0x9F: "•", 0xA7: "▪", 0xA8: "☐", 0xD8: "➢"},
    **{0xDF: "←", 0xE0: "→", 0xE8: "➔", 0xFB: "✗", 0xFC: "✓", 0xFD: "☒", 0xFE: "☑"},
}
FONTS = {"symbol": SYMBOL, "wingdings": WINGDINGS}


def find_symbol(font: str, code: str) -> str:
    """Return the character that a font shows for a hexadecimal code, "" if unknown."""
    try:
        number = int(code, 16)
    except ValueError:
        return ""
    if (table := FONTS.get(font.casefold())) is not None:
        # Word writes the codes of such fonts in an area for private use.
        return table.get(number - 0xF000 if number >= 0xF000 else number, "")
    is_letter = 0x20 <= number < 0xD800 or 0xF900 <= number <= 0xFFFD
    return chr(number) if is_letter else ""
