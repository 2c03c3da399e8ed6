//! The examples of the language's reference are valid files.

use ampsched_model::{Catalog, FileKind};

#[test]
fn every_toml_example_of_the_reference_is_accepted() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/workload-language.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut kinds = Vec::new();
    for (index, block) in text.split("```toml\n").skip(1).enumerate() {
        let example = block.split("```").next().unwrap();
        let kind = FileKind::detect("example", example)
            .unwrap_or_else(|error| panic!("{error}\n{example}"));
        let mut catalog = Catalog::new();
        catalog
            .add(kind, &index.to_string(), "example", example)
            .unwrap_or_else(|error| panic!("{error}\n{example}"));
        kinds.push(kind);
    }
    let all = [
        FileKind::Program,
        FileKind::Workload,
        FileKind::Machine,
        FileKind::CoreType,
        FileKind::Profile,
    ];
    assert_eq!(kinds, all, "one example of each kind");
}
