//! SHA-256 of files and texts, in hexadecimal digits.

use crate::hex;
use sha2::{Digest, Sha256};
use std::io::{self, Read};

/// SHA-256 of everything that `from` gives.
///
/// # Errors
/// It cannot be read.
pub fn of_all(mut from: impl Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(hex(&hash.finalize())),
            n => hash.update(&buffer[..n]),
        }
    }
}

/// SHA-256 of parts, each after its length: other parts, or the same bytes cut elsewhere, have another.
pub fn of_parts<T: AsRef<[u8]>>(parts: impl IntoIterator<Item = T>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.as_ref().len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize())
}

/// SHA-256 of bytes.
pub fn of_bytes(bytes: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(bytes))
}
