//! Pages of a Parquet file, checked before they are decoded: the library makes room for as many values as a
//! page says that it has, and a damaged one of some bytes may say two thousand million.

use ::parquet::{
    column::{
        page::{Page, PageMetadata, PageReader},
        reader::{ColumnReader, get_column_reader},
    },
    errors::{ParquetError, Result},
    file::reader::RowGroupReader,
};

/// The reader of column `place` of a group; an error if one of its pages claims more values than the group
/// has rows. Of columns that are not repeated.
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

    /// Found by fuzzing: 5.7 kB, for which the library took 6 GB. The page's number of values is damaged.
    #[test]
    fn a_page_that_claims_many_values_is_refused() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        let error = read_trace(&corpus.join("trace-parquet/many-values"), |_| {}).unwrap_err();
        let said = error.to_string();
        assert!(said.contains(" has a page of ") && said.contains(" values in "), "{said}");
    }
}
