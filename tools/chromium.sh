#!/bin/sh
# Makes sure that a Chromium is there for the test that opens the report page in a real browser.
# Installs Debian's where that needs no question (apt-get, root); elsewhere says what to do, and
# leaves it to the test to fail.
set -eu

for name in chromium chromium-browser google-chrome google-chrome-stable; do
  command -v "$name" >/dev/null 2>&1 && exit 0
done

if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" -eq 0 ]; then
  echo "installing chromium (needed by the report page's test)"
  export DEBIAN_FRONTEND=noninteractive
  if apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium >/dev/null; then
    exit 0
  fi
fi
echo "warning: no Chromium found: the report page's test will fail; install the package 'chromium' or Google Chrome" >&2
