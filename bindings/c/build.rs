//! Names the shared library for the dynamic linker, since a cdylib has no name of its own; and has it
//! stay loaded.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    match os.as_str() {
        "linux" | "android" | "freebsd" => {
            println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libfencelock.so.0");
            // Its threads run for as long as the process does: a dlclose must not take their code.
            println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
        }
        "macos" => {
            println!("cargo::rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libfencelock.0.dylib");
        }
        _ => {}
    }
}
