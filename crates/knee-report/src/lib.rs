//! How results are shown: tables in terminals, charts and drawings in SVG, reports in HTML.

pub mod chart;
pub mod drawing;
pub mod report;
pub mod run_report;
pub mod table;
