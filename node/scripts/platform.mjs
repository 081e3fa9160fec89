/** This platform as napi-rs names it, such as `linux-x64-gnu`. */
export function platform() {
  const { platform, arch, report } = process;
  const musl = !report.getReport().header.glibcVersionRuntime;
  const abi = { linux: musl ? '-musl' : '-gnu', win32: '-msvc' }[platform] ?? '';
  return `${platform}-${arch}${abi}`;
}
