//! Steps on synchronisation objects: try, then go on or wait, and wake whom that concerns.

use ampsched_model::{CodePtr, ObjectId, ThreadId};

use super::{Engine, Fallible, Step};
use crate::engine::objects::{Attempt, Misuse};
use crate::engine::threads::{Frame, WaitsFor};
use crate::{SimError, streams};

impl Engine<'_> {
    /// Goes on if the attempt succeeded, else blocks and tries again when woken.
    fn go_or_retry(&mut self, thread: ThreadId, attempt: Attempt<()>, object: ObjectId) -> Step {
        match attempt {
            Attempt::Done(()) => self.go(thread),
            Attempt::MustWait => self.block(thread, WaitsFor::Object(object)),
        }
    }

    fn misuse(&self, what: Misuse, thread: ThreadId, mutex: ObjectId) -> Box<SimError> {
        let (thread, object) = (self.thread_name(thread), self.objects.name(mutex).to_owned());
        Box::new(match what {
            Misuse::HeldAlready => SimError::HeldAlready { thread, object },
            Misuse::NotHeld => SimError::NotHeld { thread, object },
        })
    }

    fn try_lock(&mut self, thread: ThreadId, mutex: ObjectId) -> Fallible<Attempt<()>> {
        let attempt = self.objects.lock(thread, &mut self.threads[thread].held, mutex);
        let attempt = attempt.map_err(|what| self.misuse(what, thread, mutex))?;
        if attempt == Attempt::Done(()) {
            self.hand_over(thread, mutex);
        }
        Ok(attempt)
    }

    fn release_mutex(&mut self, thread: ThreadId, mutex: ObjectId) -> Fallible {
        self.prefer_spinners(mutex);
        let next = self.objects.unlock(thread, &mut self.threads[thread].held, mutex);
        let next = next.map_err(|what| self.misuse(what, thread, mutex))?;
        self.wake_all(next, thread)
    }

    pub(super) fn lock(&mut self, thread: ThreadId, mutex: ObjectId) -> Fallible<Step> {
        let attempt = self.try_lock(thread, mutex)?;
        Ok(self.go_or_retry(thread, attempt, mutex))
    }

    pub(super) fn lock_one_of(
        &mut self,
        thread: ThreadId,
        first: ObjectId,
        count: u32,
    ) -> Fallible<Step> {
        // The choice must not change when the thread tries again.
        let mut peek = self.threads[thread].draw;
        let choice = (peek.bits() % u64::from(count)) as u32;
        let mutex = ObjectId(first.0 + choice);
        let attempt = self.try_lock(thread, mutex)?;
        if attempt == Attempt::Done(()) {
            self.threads[thread].draw = peek;
        }
        Ok(self.go_or_retry(thread, attempt, mutex))
    }

    pub(super) fn unlock(&mut self, thread: ThreadId, mutex: ObjectId) -> Fallible<Step> {
        self.release_mutex(thread, mutex)?;
        Ok(self.go(thread))
    }

    pub(super) fn unlock_one_of(
        &mut self,
        thread: ThreadId,
        first: ObjectId,
        count: u32,
    ) -> Fallible<Step> {
        let range = first.0..first.0 + count;
        let held = &self.threads[thread].held;
        let latest = held.iter().rev().find(|mutex| range.contains(&mutex.0)).copied();
        self.unlock(thread, latest.unwrap_or(first))
    }

    /// A wait for a condition has two halves: block, then acquire the mutex again.
    pub(super) fn wait(
        &mut self,
        thread: ThreadId,
        condition: ObjectId,
        mutex: ObjectId,
        unlock_after: bool,
    ) -> Fallible<Step> {
        if !self.threads[thread].reacquiring {
            self.release_mutex(thread, mutex)?;
            self.threads[thread].reacquiring = true;
            self.objects.wait_condition(thread, condition);
            return Ok(self.block(thread, WaitsFor::Object(condition)));
        }
        let attempt = self.try_lock(thread, mutex)?;
        if attempt == Attempt::Done(()) {
            self.threads[thread].reacquiring = false;
            if unlock_after {
                self.release_mutex(thread, mutex)?;
            }
        }
        Ok(self.go_or_retry(thread, attempt, mutex))
    }

    pub(super) fn signal_and_wait(
        &mut self,
        thread: ThreadId,
        condition: ObjectId,
        mutex: ObjectId,
    ) -> Fallible<Step> {
        if !self.threads[thread].reacquiring {
            if self.try_lock(thread, mutex)? == Attempt::MustWait {
                return Ok(self.block(thread, WaitsFor::Object(mutex)));
            }
            let next = self.objects.signal(condition);
            self.wake_all(next, thread)?;
        }
        self.wait(thread, condition, mutex, true)
    }

    pub(super) fn signal(&mut self, thread: ThreadId, condition: ObjectId) -> Fallible<Step> {
        let next = self.objects.signal(condition);
        self.wake_all(next, thread)?;
        Ok(self.go(thread))
    }

    pub(super) fn broadcast(&mut self, thread: ThreadId, condition: ObjectId) -> Fallible<Step> {
        while let Some(next) = self.objects.signal(condition) {
            self.wake(next, Some(thread))?;
        }
        Ok(self.go(thread))
    }

    /// Arrives at a barrier; the last one wakes the others and goes on.
    pub(super) fn arrive(&mut self, thread: ThreadId, barrier: ObjectId) -> Fallible<Step> {
        self.threads[thread].next_step();
        match self.objects.arrive(thread, barrier) {
            Attempt::Done(others) => {
                self.wake_all(others, thread)?;
                Ok(Step::Go)
            }
            Attempt::MustWait => Ok(self.block(thread, WaitsFor::Object(barrier))),
        }
    }

    pub(super) fn sem_wait(&mut self, thread: ThreadId, semaphore: ObjectId) -> Step {
        let attempt = self.objects.sem_wait(thread, semaphore);
        if attempt == Attempt::Done(()) {
            self.hand_over(thread, semaphore);
        }
        self.go_or_retry(thread, attempt, semaphore)
    }

    pub(super) fn sem_post(&mut self, thread: ThreadId, semaphore: ObjectId) -> Fallible<Step> {
        self.prefer_spinners(semaphore);
        let next = self.objects.sem_post(semaphore);
        self.hand_over(thread, semaphore);
        self.wake_all(next, thread)?;
        Ok(self.go(thread))
    }

    pub(super) fn push_item(&mut self, thread: ThreadId, queue: ObjectId) -> Fallible<Step> {
        self.prefer_spinners(queue);
        match self.objects.push_item(thread, queue) {
            Attempt::Done(popper) => {
                self.hand_over(thread, queue);
                self.wake_all(popper, thread)?;
                Ok(self.go(thread))
            }
            Attempt::MustWait => Ok(self.block(thread, WaitsFor::Object(queue))),
        }
    }

    /// Takes an item, whose random amounts do not depend on who takes it, or leaves the loop if the queue has ended.
    pub(super) fn pop_item(
        &mut self,
        thread: ThreadId,
        queue: ObjectId,
        end: CodePtr,
    ) -> Fallible<Step> {
        self.prefer_spinners(queue);
        let (item, pusher) = match self.objects.pop_item(thread, queue) {
            Attempt::MustWait => return Ok(self.block(thread, WaitsFor::Object(queue))),
            Attempt::Done(done) => done,
        };
        self.hand_over(thread, queue);
        self.wake_all(pusher, thread)?;
        let entry = &mut self.threads[thread];
        let Some(number) = item else {
            entry.pc = end;
            return Ok(Step::Go);
        };
        let app = &self.apps[entry.app];
        entry.frames.push(Frame::Item { outer: entry.draw });
        entry.draw = streams::of_item(&app.draw, queue.0 - app.object_base, number);
        Ok(self.go(thread))
    }

    pub(super) fn close_queue(&mut self, thread: ThreadId, queue: ObjectId) -> Fallible<Step> {
        let poppers = self.objects.close(queue);
        self.wake_all(poppers, thread)?;
        Ok(self.go(thread))
    }
}
