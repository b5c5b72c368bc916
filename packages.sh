#!/bin/sh
# packages.sh: installs the Debian packages that pipec needs and this machine lacks; silent when all is there. They have
# the same names on Debian 12 (gcc 12, oneDNN 2.6) and on Debian 13 (gcc 14, oneDNN 3.7).
need=''
want() { need="$need $1"; }

command -v cc >/dev/null 2>&1 || want gcc
command -v g++ >/dev/null 2>&1 || want g++
command -v make >/dev/null 2>&1 || want make
command -v flex >/dev/null 2>&1 || want flex
command -v bison >/dev/null 2>&1 || want bison
echo '#include <stdio.h>' | cc -E - >/dev/null 2>&1 || want libc6-dev
echo '#include <dnnl.h>' | cc -E - >/dev/null 2>&1 || want libdnnl-dev

[ -z "$need" ] && exit 0
if ! command -v apt-get >/dev/null 2>&1; then
    echo "pipec needs these Debian packages, or what your system calls them:$need" >&2
    exit 1
fi
as_root=''
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null 2>&1 || { echo "run as root: apt-get install$need" >&2; exit 1; }
    as_root=sudo
fi
echo "installing$need"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
$as_root apt-get install -y -qq --no-install-recommends $need >/dev/null 2>&1 && exit 0
$as_root apt-get update -qq || exit 1
# shellcheck disable=SC2086
$as_root apt-get install -y -qq --no-install-recommends $need >/dev/null || exit 1
