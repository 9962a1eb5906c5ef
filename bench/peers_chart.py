"""A bar chart as SVG: one horizontal bar a ratio, with a line at 1."""
from xml.sax.saxutils import escape

WIDTH, LABEL, BAR, GAP, TOP = 900, 380, 18, 6, 48


def svg(title, bars):
    """bars: (label, ratio) pairs from top to bottom."""
    scale = (WIDTH - LABEL - 70) / max([ratio for _, ratio in bars], default=1)
    height = TOP + len(bars) * (BAR + GAP) + 12
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="24" font-size="16" fill="#222222">{escape(title)}</text>',
    ]
    for i, (label, ratio) in enumerate(bars):
        y = TOP + i * (BAR + GAP)
        colour = "#2f7d4f" if ratio >= 1 else "#b5473c"
        out.append(f'<text x="{LABEL - 8}" y="{y + 14}" text-anchor="end" fill="#222222">{escape(label)}</text>')
        out.append(f'<rect x="{LABEL}" y="{y}" width="{ratio * scale:.1f}" height="{BAR}" fill="{colour}"/>')
        out.append(f'<text x="{LABEL + ratio * scale + 6:.1f}" y="{y + 14}" fill="#222222">{ratio:.2f}</text>')
    one = LABEL + scale
    out.append(f'<line x1="{one:.1f}" y1="{TOP - 8}" x2="{one:.1f}" y2="{height - 8}" stroke="#222222" stroke-dasharray="4 3"/>')
    out.append("</svg>")
    return "\n".join(out) + "\n"
