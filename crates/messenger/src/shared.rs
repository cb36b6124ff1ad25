//! The state with its lock, those who wait for it to change, and the tasks that change it.

use crate::Error;
use crate::options::Builder;
use crate::state::State;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::timeout;

#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    changed: Notify,
    tasks: AtomicUsize,
    runtime: Handle,
}

impl Shared {
    pub(crate) fn new(options: Builder) -> Self {
        Self {
            state: Mutex::new(State::new(options)),
            changed: Notify::new(),
            tasks: AtomicUsize::new(0),
            runtime: Handle::current(),
        }
    }

    /// The state. A thread that panicked with the lock held leaves it as it was.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes those who wait, if something happened for them.
    pub(crate) fn tell(&self) {
        let changed = std::mem::take(&mut self.lock().is_changed);
        if changed {
            self.changed.notify_waiters();
        }
    }

    /// Wakes those who wait.
    pub(crate) fn tell_all(&self) {
        self.changed.notify_waiters();
    }

    /// Runs the task of a connection.
    pub(crate) fn spawn(self: &Arc<Self>, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.fetch_add(1, Ordering::Relaxed);
        let running = Running(self.clone());
        self.runtime.spawn(async move {
            let _running = running;
            task.await;
        });
    }

    pub(crate) const fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Whether no connection has a task any more.
    pub(crate) fn is_idle(&self) -> bool {
        self.tasks.load(Ordering::Acquire) == 0
    }

    /// Waits for `done`, for as long as it takes. Cancel-safe: `done` is asked within one poll.
    pub(crate) async fn wait<T>(&self, mut done: impl FnMut(&mut State) -> Option<T>) -> T {
        if let Some(result) = done(&mut self.lock()) {
            return result;
        }
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            if let Some(result) = done(&mut self.lock()) {
                return result;
            }
            changed.await;
        }
    }

    /// Waits for `done` within the builder's timeout.
    pub(crate) async fn wait_a_while<T>(
        &self,
        done: impl FnMut(&mut State) -> Option<Result<T, Error>>,
        what: impl Fn(&State) -> String,
    ) -> Result<T, Error> {
        let patience = self.lock().options.timeout;
        match timeout(patience, self.wait(done)).await {
            Ok(result) => result,
            Err(_) => Err(Error::Timeout { waiting: what(&self.lock()) }),
        }
    }
}

/// Counts a task for as long as it lives. Takes no lock: a runtime that is shut down drops the
/// task wherever it is spawned.
struct Running(Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.tasks.fetch_sub(1, Ordering::Release);
        self.0.changed.notify_waiters();
    }
}
