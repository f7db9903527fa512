//! The memory of one instance: all its linear memories and tables together.

use wasmtime::ResourceLimiter;

/// Elements that one table may have in the pool.
pub(super) const TABLE_ELEMENTS_MAX: usize = 20_000;
/// Bytes that the pool keeps for one table element.
pub(super) const TABLE_ELEMENT_BYTES: usize = size_of::<usize>();

/// Grants growth up to a sum, and remembers whether it has ever refused.
#[derive(Debug)]
pub(super) struct MemoryLimiter {
    bytes_max: u64,
    bytes: u64,
    /// The growth granted last, taken back when the allocator then fails.
    granted: u64,
    refused: Option<Refusal>,
}

/// What was asked for beyond the cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// All memories and tables together would have had this many bytes.
    Bytes(u64),
    /// One table would have had this many elements.
    TableElements(usize),
}

impl MemoryLimiter {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, bytes: 0, granted: 0, refused: None }
    }

    /// The cap.
    pub(super) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// The first growth that the cap refused.
    pub(super) fn refused(&self) -> Option<Refusal> {
        self.refused
    }

    fn grant(&mut self, grown: usize) -> bool {
        let grown = u64::try_from(grown).unwrap_or(u64::MAX);
        let wanted = self.bytes.saturating_add(grown);
        if wanted > self.bytes_max {
            self.refused.get_or_insert(Refusal::Bytes(wanted));
            return false;
        }
        self.bytes = wanted;
        self.granted = grown;
        true
    }

    fn take_back(&mut self) {
        self.bytes = self.bytes.saturating_sub(std::mem::take(&mut self.granted));
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        Ok(self.grant(desired.saturating_sub(current)))
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.take_back();
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        if desired > TABLE_ELEMENTS_MAX {
            self.refused.get_or_insert(Refusal::TableElements(desired));
            return Ok(false);
        }
        Ok(self.grant(desired.saturating_sub(current).saturating_mul(TABLE_ELEMENT_BYTES)))
    }

    fn table_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.take_back();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_and_tables_are_summed_against_one_cap() {
        let mut limiter = MemoryLimiter::new(200_000);
        assert!(limiter.memory_growing(0, 65_536, None).unwrap());
        assert!(limiter.memory_growing(0, 65_536, None).unwrap());
        assert!(limiter.table_growing(0, 8_000, None).unwrap());
        assert_eq!(limiter.refused(), None);
        // 2 × 65,536 + 8 × 8,000 = 195,072; 1,000 more elements make 203,072.
        assert!(!limiter.table_growing(8_000, 9_000, None).unwrap());
        assert_eq!(limiter.refused(), Some(Refusal::Bytes(203_072)));
    }

    #[test]
    fn a_growth_that_the_allocator_fails_is_taken_back_once() {
        let mut limiter = MemoryLimiter::new(131_072);
        assert!(limiter.memory_growing(0, 65_536, None).unwrap());
        assert!(limiter.memory_growing(65_536, 131_072, None).unwrap());
        limiter.memory_grow_failed(wasmtime::format_err!("its own maximum")).unwrap();
        limiter.memory_grow_failed(wasmtime::format_err!("refused ones are told too")).unwrap();
        assert!(limiter.memory_growing(65_536, 131_072, None).unwrap());
        assert!(!limiter.memory_growing(131_072, 196_608, None).unwrap());
    }
}
