//! What becomes of an offered deployment: the live hosts' answers decide, whoever looks at them.
//!
//! Every live host answers an offer, ready or why not. Only when all are ready does it become the active one, so that no
//! host ever has to serve what it has not made ready itself.

use crate::ids::BootId;

/// How far an offered deployment is, host by host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rollout {
    /// Live hosts that are ready.
    pub ready: Vec<String>,
    /// Live hosts that refuse it.
    pub refusing: Vec<Refusal>,
    /// Live hosts that have not answered yet.
    pub awaited: Vec<String>,
}

/// A host's reason against a deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The host.
    pub host: String,
    /// Why not.
    pub reason: String,
}

/// What is to be done with an offered deployment now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An answer is awaited, or there is no host at all.
    Wait,
    /// All are ready: it becomes the active one.
    Activate,
    /// All refuse it: it is refused for good.
    Refuse,
    /// Some are ready and some refuse: it stays offered, and a person decides.
    Split,
}

impl Rollout {
    /// Holds the answers against the live hosts, both oldest first. A host that was killed and started again within the
    /// boot timeout is seen twice: the newest life of a name counts, the others are over. Answers of hosts that are not
    /// live do not count.
    #[must_use]
    pub fn new<'a>(
        live: impl IntoIterator<Item = (BootId, &'a str)>,
        answers: &[(BootId, Result<(), &'a str>)],
    ) -> Self {
        let mut hosts: Vec<(BootId, &str)> = Vec::new();
        for (boot, name) in live {
            hosts.retain(|(_, older)| *older != name);
            hosts.push((boot, name));
        }
        let mut rollout = Self::default();
        for (boot, name) in hosts {
            let host = name.to_owned();
            match answers.iter().rfind(|(of, _)| *of == boot) {
                Some((_, Ok(()))) => rollout.ready.push(host),
                Some((_, Err(reason))) => rollout.refusing.push(Refusal { host, reason: (*reason).to_owned() }),
                None => rollout.awaited.push(host),
            }
        }
        rollout
    }

    /// What is to be done now.
    #[must_use]
    pub fn step(&self) -> Step {
        match (self.ready.is_empty(), self.refusing.is_empty(), self.awaited.is_empty()) {
            (_, _, false) | (true, true, true) => Step::Wait,
            (false, true, true) => Step::Activate,
            (true, false, true) => Step::Refuse,
            (false, false, true) => Step::Split,
        }
    }

    /// The reasons against it in one text; hosts with the same one stand together, and of a single host only the reason
    /// is told.
    #[must_use]
    pub fn reasons(&self) -> String {
        if let ([only], true, true) = (self.refusing.as_slice(), self.ready.is_empty(), self.awaited.is_empty()) {
            return only.reason.clone();
        }
        let mut grouped: Vec<(Vec<&str>, &str)> = Vec::new();
        for Refusal { host, reason } in &self.refusing {
            match grouped.iter_mut().find(|(_, known)| known == reason) {
                Some((hosts, _)) => hosts.push(host),
                None => grouped.push((vec![host], reason)),
            }
        }
        let lines: Vec<String> = grouped.iter().map(|(hosts, why)| format!("{}: {why}", hosts.join(", "))).collect();
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts by one letter each; the second character says what they answered: `+` ready, `-` refuses, `?` nothing yet.
    fn rollout(hosts: &str) -> Rollout {
        let live = hosts.split_whitespace().zip(1..).map(|(host, n)| (BootId([n; 16]), &host[..1]));
        let answers: Vec<_> = hosts
            .split_whitespace()
            .zip(1..)
            .filter_map(|(host, n)| match &host[1..] {
                "+" => Some((BootId([n; 16]), Ok(()))),
                "-" => Some((BootId([n; 16]), Err("no"))),
                _ => None,
            })
            .collect();
        Rollout::new(live, &answers)
    }

    #[test]
    fn an_offer_becomes_active_only_when_every_live_host_is_ready() {
        for (hosts, step) in [
            ("", Step::Wait),
            ("a?", Step::Wait),
            ("a+", Step::Activate),
            ("a-", Step::Refuse),
            ("a+ b?", Step::Wait),
            ("a- b?", Step::Wait),
            ("a? b?", Step::Wait),
            ("a+ b+", Step::Activate),
            ("a- b-", Step::Refuse),
            ("a+ b-", Step::Split),
            ("a- b+", Step::Split),
            ("a+ b- c?", Step::Wait),
            ("a+ b+ c+", Step::Activate),
            ("a+ b+ c-", Step::Split),
            ("a- b- c-", Step::Refuse),
        ] {
            assert_eq!(rollout(hosts).step(), step, "{hosts}");
        }
    }

    #[test]
    fn it_is_told_who_is_ready_who_refuses_and_who_is_awaited() {
        let told = rollout("a+ b- c? d+");
        let refusal = Refusal { host: "b".to_owned(), reason: "no".to_owned() };
        assert_eq!(
            told,
            Rollout { ready: vec!["a".into(), "d".into()], refusing: vec![refusal], awaited: vec!["c".into()] }
        );
    }

    #[test]
    fn the_newest_life_of_a_host_counts() {
        // Killed before it answered, and ready in its next life; then the other way round.
        assert_eq!(rollout("a? b+ a+").step(), Step::Activate);
        assert_eq!(rollout("a+ b+ a?").step(), Step::Wait);
        assert_eq!(rollout("a- b+ a+").ready, ["b", "a"]);
    }

    #[test]
    fn answers_of_hosts_that_are_over_do_not_count() {
        let (live, over) = (BootId([1; 16]), BootId([9; 16]));
        let step = |answers: &[_]| Rollout::new([(live, "a")], answers).step();
        assert_eq!(step(&[(over, Ok(()))]), Step::Wait);
        assert_eq!(step(&[(over, Err("no")), (live, Ok(()))]), Step::Activate);
    }

    #[test]
    fn reasons_name_their_hosts_unless_there_is_only_one() {
        assert_eq!(rollout("a-").reasons(), "no");
        assert_eq!(rollout("a- b-").reasons(), "a, b: no");
        assert_eq!(rollout("a+ b-").reasons(), "b: no");
        assert_eq!(rollout("a+").reasons(), "");
        let answers = [(BootId([1; 16]), Err("one")), (BootId([2; 16]), Err("two")), (BootId([3; 16]), Err("one"))];
        let live = [(BootId([1; 16]), "a"), (BootId([2; 16]), "b"), (BootId([3; 16]), "c")];
        assert_eq!(Rollout::new(live, &answers).reasons(), "a, c: one\nb: two");
    }
}
