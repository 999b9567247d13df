//! Each file of the simulator can be read alone: no module imports another that imports it back, directly
//! or over others.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// The modules below `folder`, by path from the crate's root, with their code up to their tests.
fn read(folder: &Path, parent: &str, modules: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        let below = match parent {
            "" => name.to_string(),
            _ => format!("{parent}::{name}"),
        };
        if path.is_dir() {
            read(&path, &below, modules);
        } else if name != "tests" && !below.contains("tests::") {
            let code = fs::read_to_string(&path).expect("a source file");
            let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            modules.insert(if name == "lib" { String::new() } else { below }, code.to_string());
        }
    }
}

/// The paths that the tree of a `use` declaration names, appended to `prefix`.
fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let Some((head, rest)) = tree.split_once('{') else {
        return paths.push(format!("{prefix}{}", tree.trim()));
    };
    let inside = rest.trim_end().strip_suffix('}').expect("the end of a list");
    let prefix = format!("{prefix}{}", head.trim());
    let (mut depth, mut start) = (0, 0);
    for (at, c) in inside.char_indices().chain([(inside.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let item = &inside[start..at];
                if !item.trim().is_empty() {
                    expand(&prefix, item, paths);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// The modules that `module` imports from; its own children are its parts.
fn imports(module: &str, code: &str, modules: &BTreeMap<String, String>) -> BTreeSet<String> {
    let mut paths = Vec::new();
    for declaration in code.split("\nuse ").skip(1) {
        expand("", declaration.split(';').next().unwrap_or_default(), &mut paths);
    }
    let mut found = BTreeSet::new();
    for path in paths {
        let mut from: Vec<&str> = module.split("::").collect();
        let mut steps = path.split("::").peekable();
        match steps.peek() {
            Some(&"crate") => from.clear(),
            Some(&"super") => {}
            Some(first) if modules.contains_key(&format!("{module}::{first}")) => {}
            _ => continue,
        }
        for step in steps {
            match step {
                "crate" | "self" => {}
                "super" => _ = from.pop(),
                step => from.push(step),
            }
        }
        while !from.is_empty() && !modules.contains_key(&from.join("::")) {
            from.pop();
        }
        found.insert(from.join("::"));
    }
    found.remove(module);
    found
}

#[test]
fn no_module_imports_another_that_imports_it_back() {
    let mut modules = BTreeMap::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    read(&source, "", &mut modules);
    let mut needs: BTreeMap<&str, BTreeSet<String>> = modules
        .iter()
        .map(|(module, code)| (module.as_str(), imports(module, code, &modules)))
        .collect();
    assert!(needs["sender"].contains("sender::tcb"), "{needs:?}");
    assert!(needs["sender::recovery::sack"].contains("sender::tcb"), "{needs:?}");
    assert!(needs["connection"].contains("sender"), "{needs:?}");
    // Removes the modules that need none of those left; the rest is in a circle, or needs one.
    loop {
        let left: BTreeSet<String> = needs.keys().map(ToString::to_string).collect();
        needs.retain(|_, needs| needs.iter().any(|module| left.contains(module)));
        if needs.len() == left.len() {
            break;
        }
    }
    assert!(needs.is_empty(), "in a circle, or needing one: {needs:#?}");
}
