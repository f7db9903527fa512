//! Breadth first through all that may happen: the first violation found has a shortest trace.
//!
//! Of a state only a fingerprint of 128 bits is kept, the same for worlds that differ in the names of their hosts alone.
//! Where all is explored, it is looked whether a world in which nothing more has to happen can be reached from every one.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    hash::{BuildHasherDefault, Hasher},
};

use crate::{
    action::{Action, act, possible},
    invariants::{Broken, check_quiescent},
    oracle::Oracle,
    scenario::Scenario,
    state::{HOSTS, State},
    words::standing,
    world::World,
};

/// What was found.
#[derive(Debug, Clone)]
pub struct Explored {
    /// Distinct states, worlds that differ only in the names of their hosts counted once.
    pub states: usize,
    /// Steps between them.
    pub steps: usize,
    /// Steps to the state that is farthest away.
    pub depth: usize,
    /// States in which nothing more has to happen.
    pub quiescent: usize,
    /// Kinds of actions that were taken.
    pub kinds: BTreeSet<&'static str>,
    /// How it ended.
    pub ending: Ending,
}

/// How an exploration ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Everything was seen, and everything holds.
    Holds,
    /// There is more than was asked for.
    Unfinished,
    /// This is broken, by the shortest way there.
    Violated {
        /// What.
        broken: Broken,
        /// Each step in words, with the state behind it.
        trace: Vec<String>,
    },
}

/// How far a long exploration has come.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Distinct states so far.
    pub states: usize,
    /// Of these: not looked into yet.
    pub waiting: usize,
    /// Steps from the first one.
    pub depth: usize,
}

/// Told so often, in states.
const TOLD_EVERY: usize = 1 << 19;

/// Explores all states of a scenario, `states_max` at most.
#[must_use]
pub fn explore(scenario: &Scenario, states_max: usize, mut told: impl FnMut(Progress)) -> Explored {
    assert!(scenario.fits(), "the model has no room for scenario {}", scenario.name);
    let names = namings(scenario.hosts);
    let mut search = Search::default();
    let first = State::first(scenario);
    search.found(print_of(&first, scenario.hosts, &names), None);
    let mut waiting = VecDeque::from([first]);
    let mut violated = None;
    let mut kinds = BTreeSet::new();
    while let Some(state) = waiting.pop_front() {
        let from = search.begin();
        let mut nth = 0;
        let mut has_progress = false;
        successors(scenario, &state, false, |action, next, broken, _| {
            kinds.insert(action.kind());
            has_progress |= action.is_progress();
            search.steps += 1;
            let (to, is_new) = search.found(print_of(&next, scenario.hosts, &names), Some((from, nth)));
            nth += 1;
            if action.is_progress() {
                search.progress.push(to);
            }
            if is_new {
                waiting.push_back(next);
                if search.parents.len().is_multiple_of(TOLD_EVERY) {
                    told(Progress { states: search.parents.len(), waiting: waiting.len(), depth: search.depth });
                }
            }
            if let Some(broken) = broken {
                violated = Some((broken, from, Some(nth - 1)));
            }
            violated.is_none()
        });
        if !has_progress {
            search.quiescent.push(from);
            violated = violated.or(check_quiescent(&state, scenario).map(|broken| (broken, from, None)));
        }
        if violated.is_some() || search.parents.len() > states_max {
            break;
        }
    }
    if violated.is_none() && waiting.is_empty() {
        violated = search.stuck().map(|state| (Broken::Quiescence, state, None));
    }
    let is_all = waiting.is_empty();
    let ending = match violated {
        Some((broken, state, last)) => Ending::Violated { broken, trace: trace(scenario, &search.path(state, last)) },
        None if is_all => Ending::Holds,
        None => Ending::Unfinished,
    };
    Explored {
        states: search.parents.len(),
        steps: search.steps,
        depth: search.depth,
        quiescent: search.quiescent.len(),
        kinds,
        ending,
    }
}

/// Runs every action of a state with every answer; `with` says whether to go on.
fn successors(
    scenario: &Scenario,
    state: &State,
    aloud: bool,
    mut with: impl FnMut(Action, State, Option<Broken>, Vec<String>) -> bool,
) {
    let mut oracle = Oracle::default();
    let world = World { state: *state, scenario, oracle: &mut oracle, broken: None, words: None };
    let actions = possible(&world);
    for action in actions {
        oracle.begin();
        loop {
            let words = aloud.then(Vec::new);
            let mut world = World { state: *state, scenario, oracle: &mut oracle, broken: None, words };
            act(&mut world, action);
            let (next, broken, words) = (world.state, world.broken, world.words.unwrap_or_default());
            if !with(action, next, broken, words) {
                return;
            }
            if !oracle.advance() {
                break;
            }
        }
    }
}

/// The words of a path, each step by its number among the successors.
fn trace(scenario: &Scenario, path: &[usize]) -> Vec<String> {
    let mut state = State::first(scenario);
    let mut lines = Vec::new();
    for nth in path {
        let mut at = 0;
        let mut taken = None;
        successors(scenario, &state, true, |_, next, _, words| {
            if at == *nth {
                taken = Some((next, words));
            }
            at += 1;
            taken.is_none()
        });
        let Some((next, words)) = taken else { break };
        state = next;
        lines.push(format!("{}\n       {}", words.join("\n     "), standing(&state, scenario)));
    }
    lines
}

#[derive(Default)]
struct Search {
    seen: HashMap<u128, u32, BuildHasherDefault<Taken>>,
    /// How each state was found: from which one, and as which of its successors.
    parents: Vec<Option<(u32, u32)>>,
    /// Of each state that was looked into: where its steps of progress begin.
    begins: Vec<usize>,
    progress: Vec<u32>,
    quiescent: Vec<u32>,
    steps: usize,
    depth: usize,
    /// The first state of the next depth.
    next_depth: u32,
}

impl Search {
    fn found(&mut self, print: u128, how: Option<(u32, u32)>) -> (u32, bool) {
        let new = u32::try_from(self.parents.len()).unwrap_or(u32::MAX);
        let number = *self.seen.entry(print).or_insert(new);
        if number == new {
            self.parents.push(how);
        }
        (number, number == new)
    }

    /// The next state that is looked into.
    fn begin(&mut self) -> u32 {
        let number = u32::try_from(self.begins.len()).unwrap_or(u32::MAX);
        self.begins.push(self.progress.len());
        if number == self.next_depth {
            self.depth += usize::from(number > 0);
            self.next_depth = u32::try_from(self.parents.len()).unwrap_or(u32::MAX);
        }
        number
    }

    /// A state from which no quiescent one can be reached.
    fn stuck(&self) -> Option<u32> {
        let count = self.parents.len();
        let mut back: Vec<Vec<u32>> = vec![Vec::new(); count];
        for (from, begin) in self.begins.iter().enumerate() {
            let end = self.begins.get(from + 1).copied().unwrap_or(self.progress.len());
            for to in &self.progress[*begin..end] {
                back[*to as usize].push(u32::try_from(from).unwrap_or(u32::MAX));
            }
        }
        let mut reaches = vec![false; count];
        let mut todo = self.quiescent.clone();
        while let Some(state) = todo.pop() {
            if !std::mem::replace(&mut reaches[state as usize], true) {
                todo.extend(&back[state as usize]);
            }
        }
        reaches.iter().position(|reaches| !reaches).and_then(|state| u32::try_from(state).ok())
    }

    /// From the first state to this one, and one step on.
    fn path(&self, state: u32, last: Option<u32>) -> Vec<usize> {
        let mut path: Vec<usize> = last.into_iter().map(|nth| nth as usize).collect();
        let mut at = state;
        while let Some((from, nth)) = self.parents[at as usize] {
            path.push(nth as usize);
            at = from;
        }
        path.reverse();
        path
    }
}

/// All ways to name the hosts.
fn namings(hosts: usize) -> Vec<[usize; HOSTS]> {
    let all = [[0, 1, 2], [1, 0, 2], [0, 2, 1], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let keeps = |names: &&[usize; HOSTS]| (hosts..HOSTS).all(|host| names[host] == host);
    all.iter().filter(keeps).copied().collect()
}

/// The lowest fingerprint of all the namings: the same for each of them.
fn print_of(state: &State, hosts: usize, namings: &[[usize; HOSTS]]) -> u128 {
    let print = |names: &[usize; HOSTS]| {
        let mut hasher = Print { low: 1, high: 2 };
        state.renamed(*names).hash_of(hosts, &mut hasher);
        (u128::from(hasher.high) << 64) | u128::from(hasher.low)
    };
    namings.iter().map(print).min().unwrap_or_default()
}

/// 128 bits, two halves mixed in different ways. Two states of some millions meet by chance once in 10^24 runs.
struct Print {
    low: u64,
    high: u64,
}

impl Hasher for Print {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    #[inline]
    fn write_isize(&mut self, value: isize) {
        self.write_u64(value.cast_unsigned() as u64);
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.low = (self.low.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
        self.high = (self.high ^ value.wrapping_add(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.high ^= self.high >> 29;
    }

    fn finish(&self) -> u64 {
        self.low
    }
}

/// A key that is a hash already.
#[derive(Default)]
struct Taken(u64);

impl Hasher for Taken {
    fn write(&mut self, _: &[u8]) {}

    fn write_u128(&mut self, value: u128) {
        #[expect(clippy::cast_possible_truncation, reason = "the lower half is wanted")]
        let low = value as u64;
        self.0 = low;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
