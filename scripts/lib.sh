# What the scripts share. Read by them, not run: . "$(dirname "$0")/lib.sh"
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
torch_path_file=$root/.deps/torch_path   # one line: the LibTorch folder that scripts/setup chose
script_name=scripts/$(basename "$0")

say() { printf '%s: %s\n' "$script_name" "$*" >&2; }
die() { say "$*"; exit 1; }

# Prints the comment block at the top of the calling script, without its first line: that is its --help.
print_help() { sed -n '2,/^[^#]/ s/^# \{0,1\}//p' "$0"; }

# ensure_packages NAME...: installs the Debian packages that are missing, in one call.
ensure_packages() {
  command -v dpkg-query >/dev/null || { say "not a Debian system: needed are $*"; return 0; }
  local missing=() package
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0

  local as_root=()
  if [[ $(id -u) -ne 0 ]]; then
    as_root=(sudo)
    command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; } ||
      die "packages are missing and there is no way to become root. Run: apt-get install ${missing[*]}"
  fi
  say "installing ${missing[*]}"
  local log=$root/.deps/apt.log
  mkdir -p "$root/.deps"
  "${as_root[@]}" apt-get update -qq >"$log" 2>&1 || say "apt-get update failed; trying with the lists that are there"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}" >>"$log" 2>&1 ||
    { cat "$log" >&2; die "apt-get could not install: ${missing[*]}"; }
}

# Compilers at work at once: one per core, but a file that includes LibTorch takes over 1 GB.
compile_jobs() {
  local cores memory_gb
  cores=$(nproc)
  memory_gb=$(awk '/^MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
  local by_memory=$((memory_gb / 2 > 0 ? memory_gb / 2 : 1))
  echo $((cores < by_memory ? cores : by_memory))
}

# configure PRESET: makes build/PRESET ready to build with the chosen LibTorch.
configure() {
  local folder=$root/build/$1 torch options=()
  torch=$(<"$torch_path_file")
  # A build folder remembers its LibTorch: start anew when another one was chosen.
  if [[ -f $folder/CMakeCache.txt ]] && ! grep -q "^CMAKE_PREFIX_PATH:[A-Z]*=$torch\$" "$folder/CMakeCache.txt"; then
    options+=(--fresh)
  fi
  if command -v ccache >/dev/null; then
    options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  (cd "$root" && cmake --preset "$1" "-DCMAKE_PREFIX_PATH=$torch" "${options[@]}" --log-level=WARNING >&2)
}

# build PRESET [cmake --build arguments]
build() {
  local preset=$1
  shift
  configure "$preset"
  # For ccache: precompiled headers may be cached, and a clone elsewhere finds what this one compiled.
  export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
  cmake --build "$root/build/$preset" --parallel "$(compile_jobs)" "$@" >&2
}
