//! Compilation in a child process: a module that makes the compiler loop, swell or crash takes nothing else with it.
//!
//! The child reads the module from its standard input, writes native code to its standard output and, when it fails, a
//! sentence to its standard error. It gets no environment and no paths.

use std::{
    ffi::OsString,
    io::{Read, Write},
    path::PathBuf,
    process::{ExitCode, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
};

use super::{
    PluginError,
    engine::code_config,
    fault::chain,
    text::{MESSAGE_BYTES_MAX, tamed},
};

/// The hidden subcommand that runs [`compile_child_main`].
const SUBCOMMAND: &str = "__compile";
/// Wall time of one compilation.
const COMPILE_TIME_MAX: Duration = Duration::from_secs(60);
/// Resident bytes of the child, in KiB as the kernel says them.
const COMPILE_MEMORY_KIB_MAX: u64 = 2 * 1024 * 1024;
/// How often the child's memory is looked at.
const MEMORY_CHECK: Duration = Duration::from_millis(50);
/// Bytes of native code; an 18 MB component makes 35 MB.
const NATIVE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// The executable that compiles, and the arguments that make it do so.
#[derive(Debug, Clone)]
pub struct Compiler {
    program: PathBuf,
    arguments: Vec<OsString>,
    time_max: Duration,
}

impl Compiler {
    /// This very executable, with its hidden subcommand.
    ///
    /// # Errors
    /// The executable's path cannot be had.
    pub fn this_executable() -> Result<Self, PluginError> {
        // The link and not what it points to: an upgrade may have replaced the file, and another build's code is no use.
        let own = PathBuf::from("/proc/self/exe");
        let program = if own.exists() {
            own
        } else {
            std::env::current_exe()
                .map_err(|source| PluginError::CompilerAway { program: PathBuf::from("current executable"), source })?
        };
        Ok(Self::new(program, [SUBCOMMAND]))
    }

    /// Another executable that ends in [`compile_child_main`].
    pub fn new(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { program: program.into(), arguments, time_max: COMPILE_TIME_MAX }
    }

    /// The same compiler with another wall limit; the default is 60 s.
    #[must_use]
    pub fn time_max(self, time_max: Duration) -> Self {
        Self { time_max, ..self }
    }

    /// Compiles a component; the child is killed when it is over its time or memory, or when this future is dropped.
    pub(super) async fn compile(&self, module_bytes: &[u8]) -> Result<Vec<u8>, PluginError> {
        let away = |source| PluginError::CompilerAway { program: self.program.clone(), source };
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(away)?;
        let pid = child.id();
        tokio::select! {
            answer = converse(&mut child, module_bytes) => answer.map_err(away)?,
            () = swells(pid) => {
                kill(&mut child).await;
                let limit = COMPILE_MEMORY_KIB_MAX / 1024;
                Err(PluginError::CompileFailed { reason: format!("the compiler took more than {limit} MiB of memory") })
            }
            () = tokio::time::sleep(self.time_max) => {
                kill(&mut child).await;
                Err(PluginError::CompileTimeout { seconds: self.time_max.as_secs() })
            }
        }
    }
}

type Answer = Result<Vec<u8>, PluginError>;

async fn converse(child: &mut Child, module_bytes: &[u8]) -> std::io::Result<Answer> {
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut input) = input {
            // A child that has died is told by its status, not by the broken pipe.
            let _ = input.write_all(module_bytes).await;
        }
    };
    let errors_max = u64::try_from(MESSAGE_BYTES_MAX).unwrap_or(u64::MAX);
    let ((), native, errors) = tokio::join!(write, read(output, NATIVE_BYTES_MAX), read(errors, errors_max));
    let status = child.wait().await?;
    let native = native?;
    if status.success() && !native.is_empty() {
        return Ok(Ok(native));
    }
    let errors = errors?;
    let said = String::from_utf8_lossy(&errors);
    let reason = if said.trim().is_empty() { format!("the compiler ended with {status}") } else { said.into_owned() };
    Ok(Err(PluginError::CompileFailed { reason: tamed(reason.trim(), MESSAGE_BYTES_MAX) }))
}

async fn read(pipe: Option<impl AsyncRead + Unpin>, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        let mut pipe = pipe.take(bytes_max);
        pipe.read_to_end(&mut bytes).await?;
        // What is over the limit is not kept, but read, so that the child is not stuck in its write.
        tokio::io::copy(&mut pipe.into_inner(), &mut tokio::io::sink()).await?;
    }
    Ok(bytes)
}

/// Over when the child's resident memory is over the limit; never where the kernel does not tell it.
async fn swells(pid: Option<u32>) {
    let Some(pid) = pid else { return std::future::pending().await };
    loop {
        tokio::time::sleep(MEMORY_CHECK).await;
        let status = tokio::fs::read_to_string(format!("/proc/{pid}/status")).await.unwrap_or_default();
        if resident_kib(&status).is_some_and(|kib| kib > COMPILE_MEMORY_KIB_MAX) {
            return;
        }
    }
}

fn resident_kib(status: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_ascii_whitespace().next()?.parse().ok()
}

async fn kill(child: &mut Child) {
    if let Err(error) = child.kill().await {
        tracing::warn!(%error, "the compiler's process cannot be killed");
    }
}

/// What the child does: module from standard input, native code to standard output.
#[must_use]
pub fn compile_child_main() -> ExitCode {
    let mut module_bytes = Vec::new();
    let native = std::io::stdin()
        .read_to_end(&mut module_bytes)
        .map_err(|error| format!("the module cannot be read: {error}"))
        .and_then(|_| native(&module_bytes))
        .and_then(|native| std::io::stdout().write_all(&native).map_err(|error| format!("broken pipe: {error}")));
    match native {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            let _ = writeln!(std::io::stderr(), "{reason}");
            ExitCode::FAILURE
        }
    }
}

fn native(module_bytes: &[u8]) -> Result<Vec<u8>, String> {
    let engine = wasmtime::Engine::new(&code_config()).map_err(|error| chain(&error))?;
    engine.precompile_component(module_bytes).map_err(|error| chain(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resident_size_is_read_from_the_kernels_words() {
        assert_eq!(resident_kib("Name:\toncebox\nVmPeak:\t  9 kB\nVmRSS:\t  123456 kB\n"), Some(123_456));
        assert_eq!(resident_kib(""), None);
    }

    #[tokio::test]
    async fn a_compiler_over_its_time_is_killed() {
        let compiler = Compiler::new("/bin/sh", ["-c", "exec sleep 600"]).time_max(Duration::from_millis(20));
        assert_eq!(compiler.compile(b"x").await.unwrap_err().code(), "compile-timeout");
    }

    #[tokio::test]
    async fn a_compiler_that_dies_is_told_by_its_status() {
        let compiler = Compiler::new("/bin/sh", ["-c", "kill -9 $$"]);
        let error = compiler.compile(b"x").await.unwrap_err();
        assert_eq!(error.code(), "compile-failed");
        assert!(error.to_string().contains("signal: 9"), "{error}");
    }

    #[tokio::test]
    async fn a_compiler_that_does_not_start_is_named() {
        let error = Compiler::new("/nowhere/oncebox", ["__compile"]).compile(b"x").await.unwrap_err();
        assert!(error.to_string().starts_with("the compiler /nowhere/oncebox cannot be run: "), "{error}");
    }
}
