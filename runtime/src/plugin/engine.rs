//! One wasmtime engine a process: its configuration, its pool of instances, and the way of a module into it.

use std::{path::Path, sync::Arc};

use oncebox_core::{config::HostLimits, ids::ModuleDigest, manifest::Manifest};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use wasmparser::WasmFeatures;
use wasmtime::{
    Config, Enabled, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, Store, WasmBacktraceDetails,
    component::{Component, HasSelf, Linker},
};

use super::{
    Compiler, Module, PluginError,
    cache::Cache,
    contract::{Handler, HandlerPre},
    fault::chain,
    host::Host,
    inspect::{self, Limits},
    limiter::{TABLE_ELEMENT_BYTES, TABLE_ELEMENTS_MAX},
    manifest,
    ticker::Ticker,
};

/// Bytes of a guest's stack.
const WASM_STACK_BYTES: usize = 1024 * 1024;
/// Bytes of the stack that a guest and the imports it calls share; the difference is the imports' own.
const FIBER_STACK_BYTES: usize = 2 * 1024 * 1024;
/// Frames of a backtrace.
const BACKTRACE_FRAMES_MAX: usize = 64;
/// Slots of the pool beyond the permits, so that a slot still being cleaned never fails a run.
const SPARE_SLOTS: u32 = 2;
/// Core instances of one component; Python's have 38.
pub(super) const CORE_INSTANCES_MAX: u32 = 64;
/// Linear memories of one component; QuickJS's have 3.
pub(super) const MEMORIES_MAX: u32 = 4;
/// Memory slots of the pool beyond one an instance: each reserves 4 GiB of addresses, and there are 128 TiB of them.
const MEMORY_SLOTS_MAX: u32 = 8 * 1024;
/// Tables of one component.
pub(super) const TABLES_MAX: u32 = 16;
/// Bytes of host structures that one component instance may need: a big language has tens of thousands of functions.
const INSTANCE_STRUCT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of a memory slot that are wiped in place rather than given back to the kernel.
const KEEP_RESIDENT_BYTES: usize = 256 * 1024;
/// Slots that wait with a module's memory in them. With fewer, hosts that serve a hundred modules map a memory anew for
/// nearly every event. What a slot keeps is what its module writes to, [`KEEP_RESIDENT_BYTES`] at most.
const WARM_SLOTS_MAX: u32 = 1024;
/// Live handles of a component; the contract has no resources, so that any number is generous.
const COMPONENT_HANDLES_MAX: usize = 1000;

/// Proposals that no guest language needs here and that have no switch of their own in this build of wasmtime.
const OFF: WasmFeatures = WasmFeatures::THREADS
    .union(WasmFeatures::SHARED_EVERYTHING_THREADS)
    .union(WasmFeatures::GC)
    .union(WasmFeatures::GC_TYPES)
    .union(WasmFeatures::FUNCTION_REFERENCES)
    .union(WasmFeatures::EXCEPTIONS)
    .union(WasmFeatures::LEGACY_EXCEPTIONS)
    .union(WasmFeatures::CM_ASYNC);

/// Ceilings of the host, `[host.limits]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineLimits {
    /// Bytes an instance may have, all memories and tables together.
    pub memory_bytes_max: u64,
    /// Instances alive at the same time; further runs wait.
    pub instances_max: u32,
    /// Bytes of a packed module.
    pub module_bytes_max: u64,
}

impl From<&HostLimits> for EngineLimits {
    fn from(limits: &HostLimits) -> Self {
        Self {
            memory_bytes_max: limits.memory_bytes_max,
            instances_max: limits.instances_max,
            module_bytes_max: limits.module_bytes_max,
        }
    }
}

/// The engine that compiles, keeps and runs all modules of the process.
pub struct Engine {
    wasm: wasmtime::Engine,
    limits: EngineLimits,
    linker: Linker<Host>,
    /// One an instance; fewer than the pool has slots, so that a burst waits instead of failing.
    permits: Semaphore,
    ticker: Ticker,
    compiler: Compiler,
    /// One compilation at a time: a compiler takes all cores and up to a gigabyte.
    compiling: tokio::sync::Mutex<()>,
}

impl Engine {
    /// Makes the engine; modules are compiled by this executable's hidden subcommand `__compile`.
    ///
    /// # Errors
    /// The pool cannot be reserved, or a limit is out of wasmtime's range.
    pub fn new(limits: &EngineLimits) -> Result<Arc<Self>, PluginError> {
        Self::with_compiler(limits, Compiler::this_executable()?)
    }

    /// Makes the engine with another compiler.
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn with_compiler(limits: &EngineLimits, compiler: Compiler) -> Result<Arc<Self>, PluginError> {
        let failed = |error: &wasmtime::Error| PluginError::Engine { chain: chain(error) };
        let mut config = code_config();
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(limits)));
        let wasm = wasmtime::Engine::new(&config).map_err(|error| failed(&error))?;
        let mut linker = Linker::new(&wasm);
        Handler::add_to_linker::<_, HasSelf<Host>>(&mut linker, |host| host).map_err(|error| failed(&error))?;
        let ticker = Ticker::start(wasm.weak())
            .map_err(|error| PluginError::Engine { chain: format!("epoch thread: {error}") })?;
        let permits = usize::try_from(limits.instances_max.max(1)).unwrap_or(Semaphore::MAX_PERMITS);
        Ok(Arc::new(Self {
            wasm,
            limits: *limits,
            linker,
            permits: Semaphore::new(permits.min(Semaphore::MAX_PERMITS)),
            ticker,
            compiler,
            compiling: tokio::sync::Mutex::new(()),
        }))
    }

    /// Takes a module in, up to the dry run: static checks, compilation or cache, room in the pool, linking.
    ///
    /// Native code comes from an entry of `cache_dir` whose digest was checked, or from the compiler; an entry that is
    /// corrupt or of another version is removed and made again, with a warning.
    ///
    /// # Errors
    /// What is refused and how to mend it; nothing is kept but, perhaps, the cache entry.
    pub async fn load(self: &Arc<Self>, module_bytes: &[u8], cache_dir: &Path) -> Result<Arc<Module>, PluginError> {
        let limits =
            Limits { module_bytes_max: self.limits.module_bytes_max, memory_bytes_max: self.limits.memory_bytes_max };
        let bytes = module_bytes.to_vec();
        let (digest, manifest) = blocking(move || examine(&bytes, &limits)).await??;
        let component = self.component(&digest, module_bytes, cache_dir).await?;
        let skew = |error: &wasmtime::Error| PluginError::VersionSkew { chain: chain(error) };
        let linked = self.linker.instantiate_pre(&component).map_err(|error| skew(&error))?;
        let handler = HandlerPre::new(linked).map_err(|error| skew(&error))?;
        Ok(Arc::new(Module::new(Arc::clone(self), digest, manifest, handler)))
    }

    async fn component(
        &self,
        digest: &ModuleDigest,
        module_bytes: &[u8],
        cache_dir: &Path,
    ) -> Result<Component, PluginError> {
        let cache = Cache::new(cache_dir, &self.wasm, digest);
        if let Some(component) = self.kept(&cache).await? {
            return Ok(component);
        }
        let _one_at_a_time = self.compiling.lock().await;
        // Another load of the same module may have made the entry while this one waited.
        if let Some(component) = self.kept(&cache).await? {
            return Ok(component);
        }
        let native = self.compiler.compile(module_bytes).await?;
        let wasm = self.wasm.clone();
        blocking(move || {
            // A refusal by the pool comes here: it is the module's, not the entry's.
            let component = deserialize(&wasm, &native).map_err(|error| unloadable(&error))?;
            cache.write(&native);
            Ok(component)
        })
        .await?
    }

    /// The component of a cache entry; one that the engine refuses is removed.
    async fn kept(&self, cache: &Cache) -> Result<Option<Component>, PluginError> {
        let (wasm, cache) = (self.wasm.clone(), cache.clone());
        let read = move || {
            let native = cache.read()?;
            deserialize(&wasm, &native).map_err(|error| cache.discard(&chain(&error))).ok()
        };
        blocking(read).await
    }

    /// A store for one run, with every limit armed.
    pub(super) fn store(&self, host: Host) -> Store<Host> {
        let transfer_bytes_max = host.transfer_bytes_max();
        let mut store = Store::new(&self.wasm, host);
        store.limiter(|host| host.memory());
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|store| store.data().tick());
        store.set_hostcall_fuel(transfer_bytes_max);
        store.set_max_component_handles(COMPONENT_HANDLES_MAX);
        store
    }

    pub(super) fn permits(&self) -> &Semaphore {
        &self.permits
    }

    pub(super) fn ticker(&self) -> &Ticker {
        &self.ticker
    }

    /// The host's ceilings.
    #[must_use]
    pub fn limits(&self) -> &EngineLimits {
        &self.limits
    }
}

/// Reading, hashing and mapping megabytes would hold up the other tasks of a worker.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, PluginError> {
    let cancelled = |error: tokio::task::JoinError| PluginError::Unloadable { chain: error.to_string() };
    tokio::task::spawn_blocking(work).await.map_err(cancelled)
}

fn examine(module_bytes: &[u8], limits: &Limits) -> Result<(ModuleDigest, Manifest), PluginError> {
    let section = inspect::module(module_bytes, limits)?;
    let manifest = manifest::read(section)?;
    Ok((ModuleDigest(Sha256::digest(module_bytes).into()), manifest))
}

fn unloadable(error: &wasmtime::Error) -> PluginError {
    PluginError::Unloadable { chain: chain(error) }
}

#[expect(unsafe_code, reason = "native code can only be loaded unsafely; only our own gets here, see the callers")]
fn deserialize(wasm: &wasmtime::Engine, native: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the bytes come straight from our compiler's pipe, or from a cache entry whose digest was checked over
    // these very bytes in memory, written by us into a directory that only our user may enter.
    unsafe { Component::deserialize(wasm, native) }
}

/// What decides the native code: the compiler's process and the host's engine have it in common.
pub(super) fn code_config() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .cranelift_opt_level(OptLevel::Speed)
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        .max_wasm_stack(WASM_STACK_BYTES)
        .async_stack_size(FIBER_STACK_BYTES)
        // Never from the environment: parsing DWARF at each trap costs a hundred times the trap.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .wasm_backtrace_max_frames(std::num::NonZeroUsize::new(BACKTRACE_FRAMES_MAX))
        // One core of the host at most: the others go on serving.
        .parallel_compilation(false)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false)
        .wasm_stack_switching(false)
        .wasm_features(OFF, false)
        .shared_memory(false)
        .concurrency_support(false);
    config
}

fn pool(limits: &EngineLimits) -> PoolingAllocationConfig {
    let slots = limits.instances_max.max(1).saturating_add(SPARE_SLOTS);
    let memory_bytes = usize::try_from(limits.memory_bytes_max).unwrap_or(usize::MAX);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(slots)
        .total_stacks(slots)
        .total_core_instances(slots.saturating_mul(CORE_INSTANCES_MAX))
        .total_memories(slots.saturating_mul(MEMORIES_MAX).max(WARM_SLOTS_MAX).min(MEMORY_SLOTS_MAX.max(slots)))
        .total_tables(slots.saturating_mul(TABLES_MAX))
        .max_core_instances_per_component(CORE_INSTANCES_MAX)
        .max_memories_per_component(MEMORIES_MAX)
        .max_tables_per_component(TABLES_MAX)
        .max_memories_per_module(1)
        .max_tables_per_module(TABLES_MAX)
        .max_memory_size(memory_bytes)
        .table_elements(TABLE_ELEMENTS_MAX)
        .max_core_instance_size(INSTANCE_STRUCT_BYTES_MAX)
        .max_component_instance_size(INSTANCE_STRUCT_BYTES_MAX)
        .max_unused_warm_slots(WARM_SLOTS_MAX)
        .linear_memory_keep_resident(KEEP_RESIDENT_BYTES)
        .table_keep_resident(TABLE_ELEMENTS_MAX.saturating_mul(TABLE_ELEMENT_BYTES))
        .pagemap_scan(Enabled::Auto);
    pool
}
