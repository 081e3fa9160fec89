//! Which slot a name is in.

use crate::lane::Place;
use crate::name::Name;
use crate::redis::key::encode_name;

/// How many slots a cluster has.
pub const SLOTS: u16 = 16_384;

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// Of CRC-16/XMODEM.
const TABLE: [u16; 256] = table();

fn crc(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

/// The slot of a lock: that of what stands between the braces of its keys, whatever their prefix.
pub fn place(name: &Name) -> Place {
    Place(crc(encode_name(name.as_str()).as_bytes()) % SLOTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `CLUSTER KEYSLOT` says.
    #[test]
    fn slots_are_those_of_the_hash_tag() {
        assert_eq!(crc(b"123456789"), 0x31c3);
        for (name, slot) in [("foo", 12_182), ("bar", 5_061), ("somekey", 11_058), ("a{b}", 8_914)]
        {
            assert_eq!(place(&Name::new(name).unwrap()), Place(slot), "{name}");
        }
    }
}
