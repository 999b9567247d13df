//! The data set's description as an RO-Crate (version 1.1, <https://w3id.org/ro/crate/1.1>).
//!
//! It has no time of day and no name of a machine: the same study gives the same bytes.

use crate::{
    error::StudyError,
    identity::{ENGINE, VERSION, hex},
    plan::Plan,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// Describes `files`, relative to `folder`.
pub(crate) fn crate_json(
    plan: &Plan,
    folder: &Path,
    files: impl Iterator<Item = PathBuf>,
) -> Result<Value, StudyError> {
    let study = plan.study();
    let mut parts = vec![
        file(folder, Path::new("study.toml"), "application/toml")?,
        file(folder, Path::new("scenario.toml"), "application/toml")?,
        file(folder, Path::new("study.json"), "application/json")?,
    ];
    for path in files {
        parts.push(file(folder, &path, "application/vnd.apache.parquet")?);
    }
    let ids =
        |parts: &[Value]| parts.iter().map(|p| json!({ "@id": p["@id"] })).collect::<Vec<_>>();
    let variables: Vec<Value> = study
        .columns()
        .map(|c| {
            json!({ "@id": format!("#{}", c.name), "@type": "PropertyValue", "name": c.key,
                    "description": format!("column {} of every table", c.name) })
        })
        .collect();
    let title = study.title().unwrap_or("Runs of a study of congestion control");
    let text = format!(
        "{} runs in {} shards: tables {}",
        study.runs(),
        plan.shards().len(),
        study.tables().join(", ")
    );
    let mut root = json!({
        "@id": "./",
        "@type": "Dataset",
        "name": title,
        "description": study.description().unwrap_or(&text),
        "hasPart": ids(&parts),
        "variableMeasured": ids(&variables),
        "mentions": { "@id": "#sweep" },
    });
    for (key, value) in [("datePublished", study.date()), ("license", study.license())] {
        if let Some(value) = value {
            root[key] = match key {
                "license" => json!({ "@id": value }),
                _ => json!(value),
            };
        }
    }
    let mut graph = vec![
        json!({
            "@id": "ro-crate-metadata.json",
            "@type": "CreativeWork",
            "conformsTo": { "@id": "https://w3id.org/ro/crate/1.1" },
            "about": { "@id": "./" },
        }),
        root,
        json!({
            "@id": "#sweep",
            "@type": "CreateAction",
            "name": "knee sweep",
            "description": text,
            "instrument": { "@id": "#knee" },
            "object": [{ "@id": "study.toml" }, { "@id": "scenario.toml" }],
            "result": ids(&parts[3..]),
        }),
        json!({
            "@id": "#knee",
            "@type": "SoftwareApplication",
            "name": "Knee",
            "softwareVersion": VERSION,
            "version": plan.commit().unwrap_or("unknown"),
            "identifier": ENGINE,
        }),
    ];
    graph.extend(variables);
    graph.extend(parts);
    Ok(json!({ "@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph }))
}

fn file(folder: &Path, path: &Path, format: &str) -> Result<Value, StudyError> {
    let (bytes, sha256) = hashed(&folder.join(path))
        .map_err(|e| StudyError::of_file("read", &folder.join(path), &e))?;
    // An identifier is a URI: all but plain characters are escaped in a path already, but for `%` itself.
    let id = path.display().to_string().replace('%', "%25");
    Ok(json!({
        "@id": id,
        "@type": "File",
        "encodingFormat": format,
        "contentSize": bytes.to_string(),
        "sha256": sha256,
    }))
}

fn hashed(path: &Path) -> io::Result<(u64, String)> {
    let (mut file, mut hash) = (File::open(path)?, Sha256::new());
    let (mut buffer, mut bytes) = (vec![0; 1 << 16], 0);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((bytes, hex(&hash.finalize()))),
            n => {
                bytes += n as u64;
                hash.update(&buffer[..n]);
            }
        }
    }
}
