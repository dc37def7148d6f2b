"""Images as they are kept, and a sentence for each file that is none."""

import pytest

from chatsite.features.attachments.images import reading as images

from ..test_reading import read, refusal
from . import pictures

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


class TestRead:
    @pytest.mark.parametrize(
        ("kind", "name"), [("PNG", "a.png"), ("JPEG", "b.JPG"), ("WEBP", "c.webp")]
    )
    async def test_each_kind_is_kept_as_png_or_jpeg(self, kind, name):
        found = await read(name, pictures.make(kind))
        said = found.image.image
        assert (said.width, said.height) == (40, 30)
        assert said.type in ("image/png", "image/jpeg")
        shown = pictures.open_image(found.image.data)
        assert f"image/{shown.format.lower()}" == said.type
        assert found.text == f"[image: {name}, 40 x 30 pixels, 1 KB]"

    async def test_a_large_one_becomes_smaller(self, settings):
        settings.IMAGE_MAX_SIDE = 256
        found = await read("wide.png", pictures.make("PNG", (800, 200)))
        assert (found.image.image.width, found.image.image.height) == (256, 64)
        assert pictures.open_image(found.image.small).size == (256, 64)

    async def test_pixels_alone_are_kept(self):
        word = "48.8584 North, 2.2945 East"
        found = await read("photo.jpg", pictures.with_words(word))
        for data in (found.image.data, found.image.small):
            assert word.encode() not in data
            assert not pictures.open_image(data).getexif()
        # It stood on its side.
        assert (found.image.image.width, found.image.image.height) == (30, 40)

    async def test_animation_is_read_as_its_first_picture(self):
        still = [pictures.Image.new("P", (4, 4), n % 200) for n in range(10_000)]
        data = pictures.make_animation(still)
        assert (await read("dance.gif", data)).image.image.width == 4

    async def test_data_behind_an_image_is_dropped(self):
        hidden = b"<script>alert(1)</script>PK\x03\x04"
        found = await read("both.png", pictures.make() + hidden)
        assert hidden not in found.image.data

    async def test_large_image_is_kept_within_its_bytes(self, monkeypatch):
        monkeypatch.setattr(images, "MAX_BYTES", 20_000)
        found = await read("noise.png", pictures.noise(600))
        assert len(found.image.data) <= 20_000


class TestRefused:
    async def test_a_bomb_is_not_unpacked(self):
        assert await refusal("bomb.png", pictures.bomb(50_000, 50_000)) == (
            "too_many_pixels"
        )

    @pytest.mark.parametrize("size", [(9_000, 9_000), (1_000_000, 1)])
    async def test_image_beyond_the_programs_limits_is_refused(self, settings, size):
        settings.IMAGE_MAX_MEGAPIXELS = 10_000
        settings.IMAGE_MEMORY_MB = 128
        code = await refusal("bomb.png", pictures.bomb(*size))
        assert code in ("too_complex", "broken")

    @pytest.mark.parametrize(
        ("name", "data", "code"),
        [
            ("drawing.png", SVG, "wrong_kind"),
            ("notes.jpg", b"Hello", "wrong_kind"),
            ("photo.heic", b"\0\0\0\x18ftypheic....", "wrong_kind"),
            ("photo.jpg", b"\0\0\0\x18ftypmif1....", "wrong_kind"),
            ("notes.txt", pictures.make(), "wrong_kind"),
            ("cut.png", pictures.make()[:60], "broken"),
            ("empty.png", b"\x89PNG\r\n\x1a\n", "broken"),
            ("lies.gif", b"GIF89a" + b"\xff" * 40, "broken"),
            ("odd.webp", b"RIFF\x04\0\0\0WEBPVP8 \0\0\0\0", "broken"),
            ("sound.wav", b"RIFF\x04\0\0\0WAVE", "not_text"),
        ],
    )
    async def test_other_file_is_refused(self, name, data, code):
        assert await refusal(name, data) == code

    async def test_slow_image_is_stopped(self, settings, monkeypatch):
        async def run(*args, **kwargs):
            return b""

        monkeypatch.setattr(images.processes, "run_program", run)
        assert await refusal("slow.png", pictures.make()) == "too_complex"
