//! Parameter sets as they go from one process of Knee to another.

use crate::{Params, algorithm, load_text};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// A parameter set as it goes from one process of Knee to another.
#[derive(Serialize, Deserialize)]
struct Written {
    algorithm: String,
    words: Vec<u32>,
    /// File and text of a loaded one.
    source: Option<(String, String)>,
}

impl From<&Params> for Written {
    fn from(params: &Params) -> Self {
        let source = params.algorithm().source();
        Self {
            algorithm: params.algorithm().name().to_owned(),
            words: params.words().to_vec(),
            source: source.map(|source| (source.file.clone(), source.text.clone())),
        }
    }
}

impl Written {
    fn read(self) -> Result<Params, String> {
        let Self { algorithm: name, words, source } = self;
        let algorithm = match source {
            Some((file, text)) => load_text(&file, &text).map_err(|e| e.to_string())?,
            None => algorithm(&name).ok_or_else(|| format!("no algorithm `{name}`"))?,
        };
        let table = algorithm.params();
        if table.len() != words.len() {
            return Err(format!("{name} has {} parameters, not {}", table.len(), words.len()));
        }
        let given = table.iter().zip(words).map(|(param, word)| (param.name, u64::from(word)));
        Params::new(algorithm, given).map_err(|e| e.to_string())
    }
}

impl Serialize for Params {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Written::deserialize(deserializer)?.read().map_err(D::Error::custom)
    }
}
