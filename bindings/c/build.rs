//! Names the shared library for the dynamic linker: a cdylib has no name of its own.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    match os.as_str() {
        "linux" | "android" | "freebsd" => {
            println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libfencelock.so.0");
        }
        "macos" => {
            println!("cargo::rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libfencelock.0.dylib");
        }
        _ => {}
    }
}
