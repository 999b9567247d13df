//! Sweeps: a study names a scenario and its axes. Its runs are made in shards, each a pure function of the
//! study and its number, and kept as a Parquet data set.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! # std::fs::write(dir.path().join("base.toml"), "duration = \"2s\"\n[path]\nrate = \"10mbit\"\nrtt = \"40ms\"\nqueue = \"84p\"\n[[flow]]\ncc = \"chd\"\n")?;
//! use knee_study::{DataSet, Plan, Slice, Study};
//! use std::sync::atomic::AtomicBool;
//!
//! let text = r#"
//!     scenario = "base.toml"
//!     repeat = 2
//!     [axes]
//!     "path.loss_forward" = [0, 0.01]
//!     "flow.0.cc" = ["chd", "newreno"]
//! "#;
//! let study = Study::parse(dir.path(), "study.toml", text)?;
//! let plan = Plan::new(study, &knee_sim::Simulator, None)?;
//! let folder = dir.path().join("out");
//! let data = DataSet::open(&folder, &plan, Slice::WHOLE)?;
//! for shard in data.missing(&plan) {
//!     // Anywhere: in another thread, process, or on another machine that sees the folder.
//!     plan.write_shard(shard, &folder, &knee_sim::Simulator, &AtomicBool::new(false), &|_| ())?;
//! }
//! assert!(data.finish(&plan));
//! let rows: usize = data.read("runs")?.map(|batch| batch.map(|b| b.num_rows())).sum::<Result<_, _>>()?;
//! assert_eq!(rows, 8);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod axis;
mod dataset;
mod error;
mod identity;
mod plan;
mod reader;
mod study;
mod table;

pub use arrow_array::RecordBatch;
pub use axis::{AxisColumn, Cells, Dimension};
pub use dataset::{DataSet, Slice, Status};
pub use error::StudyError;
pub use identity::{ENGINE, VERSION, run_id};
pub use plan::{Plan, Shard, Written};
pub use study::{Base, RUNS_MAX, Run, Study};
pub use table::{Kept, TABLES};
