"""The only file that imports Pillow: recognises encoded images and makes small pictures of them for previews."""

import base64
import io
from typing import Any

from strata.errors import MissingExtra

__all__ = ["looks_like_image", "thumbnail"]

_MAGIC = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a", b"BM")


def looks_like_image(value: bytes) -> bool:
    """By the first bytes; nothing is decoded."""
    return value.startswith(_MAGIC) or (value[:4] == b"RIFF" and value[8:12] == b"WEBP")


def thumbnail(value: bytes, side: int = 96) -> dict[str, Any]:
    """Format, size and a data URL of at most `side` pixels. A broken image says so instead."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise MissingExtra("pillow", "data") from error
    try:
        with Image.open(io.BytesIO(value)) as image:
            width, height, form = image.width, image.height, image.format
            if width * height > 100_000_000:
                return {"kind": "image", "error": f"{width}×{height} pixels are too many to show", "size": len(value)}
            image.draft("RGB", (side * 2, side * 2))
            small = image.convert("RGB")
            small.thumbnail((side, side))
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError) as error:
        return {"kind": "image", "error": str(error)[:200], "size": len(value)}
    out = io.BytesIO()
    small.save(out, "JPEG", quality=75)
    url = "data:image/jpeg;base64," + base64.b64encode(out.getvalue()).decode()
    return {"kind": "image", "format": form, "width": width, "height": height, "size": len(value), "thumbnail": url}
