use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

/// A program of this workspace.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Program {
    /// `hopline-broker`
    Broker,
    /// `hopline-publish`
    Publish,
    /// `hopline-subscribe`
    Subscribe,
    /// `hopline-report`
    Report,
    /// `hopline-lab`, with the programs that it starts.
    Lab,
    /// The client on fe2o3-amqp, an example of this package.
    Fe2o3Client,
    /// The client on fe2o3-amqp that sends and browses values, another.
    Fe2o3Values,
}

impl Program {
    /// A command that runs the program, built from the sources as they are, with the profile that
    /// the test itself was built with.
    ///
    /// # Panics
    /// If it does not build.
    pub fn command(self) -> Command {
        let folder = target_folder();
        self.build(&folder);
        if self == Program::Lab {
            let started = [Program::Broker, Program::Publish, Program::Subscribe];
            started.into_iter().for_each(|program| program.build(&folder));
        }
        Command::new(match self {
            _ if self.is_example() => folder.join("examples").join(self.name()),
            _ => folder.join(self.name()),
        })
    }

    fn name(self) -> &'static str {
        match self {
            Program::Broker => "hopline-broker",
            Program::Publish => "hopline-publish",
            Program::Subscribe => "hopline-subscribe",
            Program::Report => "hopline-report",
            Program::Lab => "hopline-lab",
            Program::Fe2o3Client => "fe2o3_client",
            Program::Fe2o3Values => "fe2o3_values",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Program::Broker => "hopline-bin-broker",
            Program::Publish => "hopline-bin-publisher",
            Program::Subscribe => "hopline-bin-subscriber",
            Program::Report => "hopline-bin-report",
            Program::Lab => "hopline-bin-lab",
            Program::Fe2o3Client | Program::Fe2o3Values => "hopline-tests",
        }
    }

    fn is_example(self) -> bool {
        matches!(self, Program::Fe2o3Client | Program::Fe2o3Values)
    }

    /// Cargo builds a test's own package before the test, not the programs that it runs; and a
    /// program of yesterday would be worse than none. When nothing changed this is quick.
    fn build(self, folder: &Path) {
        static BUILT: [Once; 7] = [const { Once::new() }; 7];
        BUILT[self as usize].call_once(|| {
            let kind = if self.is_example() { "--example" } else { "--bin" };
            let profile = match folder.file_name() {
                Some(name) if name == "debug" => "dev".as_ref(),
                Some(name) => name,
                None => panic!("{} has no name", folder.display()),
            };
            let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
            cargo.current_dir(workspace_root()).args(["build", "--quiet"]);
            cargo.args(["--package", self.package(), kind, self.name()]);
            cargo.arg("--profile").arg(profile);
            cargo.arg("--target-dir").arg(folder.parent().expect("below the target folder"));
            let status = cargo.status().unwrap_or_else(|error| panic!("{cargo:?}: {error}"));
            assert!(status.success(), "{cargo:?} ended with {status}");
        });
    }
}

/// A command that runs a script of `tests/peers`.
///
/// # Panics
/// If what the peers need is not installed: a test that can't run must not pass.
pub(crate) fn peer_command(script: &str) -> Command {
    let peers = workspace_root().join(".peers");
    for part in ["venv/installed", "node/installed", "proton-broker"] {
        assert!(peers.join(part).exists(), "the peers are not installed: run scripts/test");
    }
    Command::new(workspace_root().join("tests/peers").join(script))
}

/// The top of the checkout.
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("the package is in the workspace").to_owned()
}

/// `target/debug` or the like: a test runs from the folder `deps` in it.
fn target_folder() -> PathBuf {
    let test = std::env::current_exe().expect("the system tells where the test is");
    let folder = test.parent().and_then(Path::parent);
    folder.expect("a test is two folders below the profile's").to_owned()
}
