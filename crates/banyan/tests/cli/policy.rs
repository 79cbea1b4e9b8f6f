//! Rules on the command line: writing them, checking them, and trying them on calls.

use crate::home::Home;

const TESTS: &str = r#"
[[test]]
principal = "ann"
resource = "files.read"
read_only = true
expect = "allow"

[[test]]
name = "nothing is wiped"
principal = "ann"
resource = "files.wipe"
arguments = { path = "/etc" }
expect = "deny"
rules = ["no-wipe"]
"#;

const RULES: &str = r#"
@id("all") permit (principal, action, resource);
@id("no-wipe") forbid (principal, action, resource == Tool::"files.wipe")
when { context.arguments has path && context.arguments.path like "/etc*" };
"#;

#[test]
fn rules_are_begun_with_a_file_that_can_be_used_and_is_not_overwritten() {
    let home = Home::new();
    assert!(home.run(&["policy", "check"]).exits(3).err.contains("banyan.toml"));
    assert!(home.run(&["policy", "init"]).exits(0).out.contains("[policy]\nfile = \"policy.cedar\""));
    home.write("banyan.toml", "[policy]\nfile = \"policy.cedar\"\n");
    home.run(&["check"]).exits(0);
    assert!(home.run(&["policy", "check"]).exits(0).out.contains("is fine: 1 rule"));
    assert!(home.run(&["policy", "init"]).exits(1).err.contains("name another file"));
}

#[test]
fn a_mistake_in_the_rules_is_shown_with_its_line_and_a_caret() {
    let home = Home::new();
    home.write("banyan.toml", "[policy]\nfile = \"policy.cedar\"\n");
    assert!(home.run(&["check"]).exits(1).err.contains("banyan policy init"));
    home.write("policy.cedar", "// rules\npermit (principal, action, resource) when { resource.read_onyl };\n");
    for arguments in [&["check"][..], &["policy", "check"]] {
        let said = home.run(arguments).exits(1).err;
        assert!(said.contains("policy.cedar:2:") && said.contains("resource.read_onyl") && said.contains("^^^"), "{said}");
    }
    let problems = home.run(&["policy", "check", "--json"]).exits(1).json();
    assert_eq!((&problems["ok"], &problems["problems"][0]["line"]), (&false.into(), &2.into()));
}

#[test]
fn calls_are_tried_and_what_is_not_as_expected_is_a_failure() {
    let home = Home::new();
    home.write("policy.cedar", RULES);
    home.write("tests.toml", TESTS);
    let fine = home.run(&["policy", "test", "tests.toml", "--rules", "policy.cedar"]).exits(0).out;
    assert!(fine.contains("nothing is wiped: deny (no-wipe)") && fine.contains("2 calls as expected"), "{fine}");
    home.write("policy.cedar", "permit (principal, action, resource);");
    let ran = home.run(&["policy", "test", "tests.toml", "--rules", "policy.cedar"]).exits(1);
    assert!(ran.out.contains("nothing is wiped: allow (line 1), deny expected") && ran.err.contains("1 of 2 calls"), "{ran:?}");
    let told = home.run(&["policy", "test", "tests.toml", "--rules", "policy.cedar", "--json"]).exits(1).json();
    assert_eq!((&told["ok"], &told["tests"][1]["effect"]), (&false.into(), &"allow".into()));
}
