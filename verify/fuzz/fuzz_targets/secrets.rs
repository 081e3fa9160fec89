#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fencelock_fuzz_bodies::secrets(bytes));
