#!/bin/sh
# The programs that tests and screenshots need: Chromium, Redis, PostgreSQL, PgBouncer,
# nginx, openssl, faketime, systemd's checker of units and a font with Chinese characters.
# Root gets them installed, everyone else sees the command.
set -eu

has_postgres() { command -v initdb || ls /usr/lib/postgresql/*/bin/initdb; }
can_install() { [ "$(id -u)" = 0 ] && command -v apt-get; }
has_chromium() {
    command -v "$chromium" && return
    ! { can_install && [ "$chromium" != chromium ]; } || return 1
    command -v chromium || command -v chromium-browser || command -v google-chrome
}
has_pgbouncer() { command -v pgbouncer || ls /usr/sbin/pgbouncer; }
has_nginx() { command -v nginx || ls /usr/sbin/nginx; }
has_font() { ls /usr/share/fonts/*/noto/NotoSansCJK* || fc-list :lang=zh | grep -q .; }

# Debian has one that can do without a screen, which makes the tests shorter. Where there
# is none, and for those who can't install it, any will do.
chromium=chromium-headless-shell
apt-cache show "$chromium" > /dev/null 2>&1 || chromium=chromium

packages=""
has_chromium > /dev/null 2>&1 || packages="$packages $chromium"
has_postgres > /dev/null 2>&1 || packages="$packages postgresql"
has_font > /dev/null 2>&1 || packages="$packages fonts-noto-cjk"
command -v redis-server > /dev/null 2>&1 || packages="$packages redis-server"
has_pgbouncer > /dev/null 2>&1 || packages="$packages pgbouncer"
has_nginx > /dev/null 2>&1 || packages="$packages nginx"
command -v openssl > /dev/null 2>&1 || packages="$packages openssl"
command -v systemd-analyze > /dev/null 2>&1 || packages="$packages systemd"
command -v faketime > /dev/null 2>&1 || packages="$packages faketime"

if [ -z "$packages" ]; then
    exit 0
fi
if ! can_install > /dev/null; then
    echo "Programs are missing. Install them and try again:" >&2
    echo "    sudo apt-get install -y --no-install-recommends$packages" >&2
    exit 1
fi
echo "Installing$packages"
apt-get update -qq
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $packages > /dev/null
