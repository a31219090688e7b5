# Builds what a guest boots from, once per kernel. Sourced by guest.

# build_guest CACHE: sets guest_kernel, guest_initramfs and guest_modules (a folder for modprobe -d).
build_guest() {
  local cache=$1 package
  guest_modules=$cache/kernel
  guest_initramfs=$cache/initramfs.gz
  if [[ ! -e $cache/ready ]]; then
    package=$(apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends: linux-image-6/ {print $2; exit}')
    [[ -n $package ]] || skip "apt knows no linux-image-amd64"
    echo "fetching $package"
    rm -rf "$cache/packages" "$guest_modules" && mkdir -p "$cache/packages" || return 1
    (cd "$cache/packages" && timeout 300 apt-get download "$package" >/dev/null 2>"$cache/fetch.log") ||
      skip "the package $package cannot be fetched: $(tail -n 1 "$cache/fetch.log")"
    dpkg-deb -x "$cache"/packages/linux-image-*.deb "$guest_modules" || return 1
    rm -rf "$cache/packages"
    local version
    version=$(cd "$guest_modules/lib/modules" && echo *)
    depmod -b "$guest_modules" "$version" || return 1
    build_initramfs "$version" || return 1
    touch "$cache/ready"
  fi
  guest_kernel=$(echo "$guest_modules"/boot/vmlinuz-*)
}

# build_initramfs VERSION: busybox, and the modules with which the root file system is mounted, in their order.
build_initramfs() {
  local version=$1 root module line
  root=$(mktemp -d)
  mkdir -p "$root"/{bin,modules,root,proc,sys,dev}
  cp "$(command -v busybox)" "$root/bin/busybox"
  local order=0
  for module in virtio_pci 9pnet_virtio 9p; do
    while read -r _ line _; do
      [[ $line == *.ko* ]] || continue
      grep -qxF "$line" "$root/modules/list" 2>/dev/null && continue
      echo "$line" >>"$root/modules/list"
      cp "$line" "$root/modules/$(printf '%02d' $order)-$(basename "$line")"
      order=$((order + 1))
    done < <(modprobe -d "$guest_modules" -S "$version" --show-depends "$module")
  done
  cp "$here/init" "$root/init" && chmod +x "$root/init" &&
    (cd "$root" && find . | cpio --quiet -o -H newc | gzip) >"$guest_initramfs"
  local status=$?
  rm -rf "$root"
  return $status
}
