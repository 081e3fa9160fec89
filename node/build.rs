//! Tells the linker what Node's symbols are.

fn main() {
    napi_build::setup();
}
