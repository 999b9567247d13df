//! Pages of a Parquet file, checked before they are decoded: the library makes room for as many values as a
//! page says that it has, and a damaged one of some bytes may say two thousand million. It also passes over as
//! many unknown values as a page's header says, one by one, even where the file has ended.

use ::parquet::{
    column::{
        page::{Page, PageMetadata, PageReader},
        reader::{ColumnReader, get_column_reader},
    },
    errors::{ParquetError, Result},
    file::reader::{ChunkReader, Length, RowGroupReader},
};
use bytes::Bytes;
use std::{
    fs::File,
    io::{self, BufReader, Read},
};

/// A file of which no reader reads beyond the end.
pub(crate) struct Bounded(pub(crate) File);

impl Length for Bounded {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for Bounded {
    type T = ToTheEnd;

    fn get_read(&self, start: u64) -> Result<ToTheEnd> {
        Ok(ToTheEnd(self.0.get_read(start)?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.0.get_bytes(start, length)
    }
}

/// Reads to the end; there, to read on is an error.
pub(crate) struct ToTheEnd(BufReader<File>);

impl Read for ToTheEnd {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.0.read(into)? {
            0 if !into.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => Ok(bytes),
        }
    }
}

/// The reader of column `place` of a group, which must not be repeated; an error if one of its pages
/// claims more values than the group has rows.
pub(crate) fn column_reader(group: &dyn RowGroupReader, place: usize) -> Result<ColumnReader> {
    let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
    let column = group.metadata().schema_descr().column(place);
    let name = column.name().to_owned();
    let pages = Checked { pages: group.get_column_page_reader(place)?, rows, name };
    Ok(get_column_reader(column, Box::new(pages)))
}

struct Checked {
    pages: Box<dyn PageReader>,
    rows: usize,
    name: String,
}

impl Checked {
    fn check(&self, page: Option<Page>) -> Result<Option<Page>> {
        match page {
            Some(page) if page.num_values() as usize > self.rows => {
                let (name, values, rows) = (&self.name, page.num_values(), self.rows);
                let what = format!("column `{name}` has a page of {values} values in {rows} rows");
                Err(ParquetError::General(what))
            }
            page => Ok(page),
        }
    }
}

impl Iterator for Checked {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Checked {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        self.check(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

#[cfg(test)]
mod tests {
    use crate::trace::read_trace;
    use std::path::Path;

    /// The error for a file of the fuzzer's corpus.
    fn said_of(name: &str) -> String {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/trace-parquet");
        read_trace(&corpus.join(name), |_| {}).unwrap_err().to_string()
    }

    /// Found by fuzzing: 5.7 kB, for which the library took 6 GB. The page's number of values is damaged.
    #[test]
    fn a_page_that_claims_many_values_is_refused() {
        let said = said_of("many-values");
        assert!(said.contains(" has a page of ") && said.contains(" values in "), "{said}");
    }

    /// Found by fuzzing: 7.8 kB, for which the library read 25 s long where nothing was left to read.
    #[test]
    fn a_header_that_claims_data_beyond_the_end_is_refused() {
        let said = said_of("beyond-the-end");
        assert!(said.contains("unexpected end of file"), "{said}");
    }
}
