//! Presentation of results: tables in terminals, charts and drawings in SVG, reports in HTML.
//!
//! ```
//! let mut table = knee_report::table::Table::new("Flows", &["flow"], &["goodput (Mbit/s)"]);
//! table.row(["chd", "8.8"]);
//! assert!(table.to_text(None).contains("chd"));
//! ```

mod axis;
pub mod chart;
pub mod drawing;
mod palette;
pub mod report;
pub mod run_report;
mod svg;
pub mod table;
