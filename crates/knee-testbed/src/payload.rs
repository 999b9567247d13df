//! The data of TCP flows: bytes that tell their place, so that a receiver sees that all have come, as
//! they were sent and in order.

/// Bytes written or read at once.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;
/// After so many bytes they repeat. A prime, so that no loss of whole packets or chunks goes unseen.
const PERIOD_BYTES: usize = 1_048_573;

/// The bytes of every TCP flow.
pub(crate) struct Payload(Vec<u8>);

impl Payload {
    pub(crate) fn new() -> Self {
        let mut bytes = Vec::with_capacity(PERIOD_BYTES + CHUNK_BYTES);
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        while bytes.len() < PERIOD_BYTES {
            // Marsaglia's xorshift.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.extend_from_slice(&state.to_le_bytes());
        }
        bytes.truncate(PERIOD_BYTES);
        bytes.extend_from_within(..CHUNK_BYTES);
        Self(bytes)
    }

    /// Up to [`CHUNK_BYTES`] bytes from `position` in a flow on.
    pub(crate) fn at(&self, position: u64, len: usize) -> &[u8] {
        let start = (position % PERIOD_BYTES as u64) as usize;
        &self.0[start..start + len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_depend_on_their_place_alone() {
        let payload = Payload::new();
        let period = PERIOD_BYTES as u64;
        for position in [0, 1, 1448, period - 1, period, 7 * period - 1000] {
            let whole = payload.at(position, CHUNK_BYTES);
            assert_eq!(
                whole[5000..],
                payload.at(position + 5000, CHUNK_BYTES)[..CHUNK_BYTES - 5000]
            );
            for moved in [1, 1448, CHUNK_BYTES as u64] {
                assert_ne!(whole, payload.at(position + moved, CHUNK_BYTES), "{position} {moved}");
            }
        }
    }
}
