"""Image input: the models that take images, and the tokens of an image for them.

By OpenAI's guide (https://platform.openai.com/docs/guides/images-vision, "Calculating
costs"), some models count tiles of 512 pixels after the image was fitted into 2,048 by
2,048 and its shorter side to 768; others patches of 32 pixels, at most 1,536, times a
factor.
"""

from fnmatch import fnmatchcase
from math import ceil, sqrt

from . import providers
from .demo.chat_model import IMAGE_TOKENS

TILE, TILED_SIDE, TILED_SHORT_SIDE = 512, 2_048, 768
PATCH, MOST_PATCHES = 32, 1_536
# The first that fits: tokens of an image, and of each of its tiles.
TILES = (
    (providers.DEMO, IMAGE_TOKENS, 0),
    ("gpt-4o-mini*", 2_833, 5_667),
    ("gpt-5*", 70, 140),
    ("o[13]*", 75, 150),
    ("computer-use*", 65, 129),
)
USUAL_TILES = (85, 170)
PATCHES = (
    *(("gpt-4.1-mini*", 1.62), ("gpt-4.1-nano*", 2.46), ("o4-mini*", 1.72)),
    *(("gpt-5-mini*", 1.62), ("gpt-5-nano*", 2.46)),
    *(("gpt-5.4-mini*", 1.62), ("gpt-5.4-nano*", 2.46)),
)


def takes_images(name: str) -> bool:
    """Return True if the model takes images.

    It is the configured value, else LangChain's of OpenAI's own models.
    """
    images = providers.find_model(name).images
    if images is not None:
        return images
    if providers.is_demo(name):
        return True
    return bool(providers.read_profile(name).get("image_inputs"))


def count_image(name: str, width: int, height: int) -> int:
    """Return the tokens of an image of so many pixels.

    A model without a known rule has the tokens of most models.
    """
    for pattern, factor in PATCHES:
        if fnmatchcase(name, pattern):
            return ceil(_count_patches(width, height) * factor)
    found = (tokens for pattern, *tokens in TILES if fnmatchcase(name, pattern))
    base, each = next(found, USUAL_TILES)
    return base + each * _count_tiles(width, height)


def _count_tiles(width: int, height: int) -> int:
    longer, shorter = max(width, height, 1), max(1, min(width, height))
    scale = min(1.0, TILED_SIDE / longer)
    scale = min(scale, TILED_SHORT_SIDE / shorter)
    return ceil(longer * scale / TILE) * ceil(shorter * scale / TILE)


def _count_patches(width: int, height: int) -> int:
    width, height = max(1, width), max(1, height)
    wide, high = width / PATCH, height / PATCH
    if ceil(wide) * ceil(high) <= MOST_PATCHES:
        return ceil(wide) * ceil(high)
    # As large as fits, and then a little smaller, so that one side is whole patches.
    scale = sqrt(MOST_PATCHES / (wide * high))
    whole = max(1, int(wide * scale)), max(1, int(high * scale))
    scale *= min(1.0, whole[0] / (wide * scale), whole[1] / (high * scale))
    return min(MOST_PATCHES, ceil(wide * scale) * ceil(high * scale))
