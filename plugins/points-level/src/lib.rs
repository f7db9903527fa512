//! Sets a member's level. Events may come late and out of order: the newest version wins.
#![forbid(unsafe_code)]

use oncebox_sdk::prelude::*;
use serde::Deserialize;

oncebox_sdk::manifest!();

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LevelChanged {
    user_id: u64,
    level: i64,
    version: u64,
}

struct PointsLevel;

impl Handler for PointsLevel {
    fn handle(event: &Event) -> Result<Done, Failure> {
        let LevelChanged { user_id, level, version } = event.json()?;
        db::set_level(level, version, user_id, version);
        Ok(Done::applied())
    }
}

oncebox_sdk::export!(PointsLevel);

#[cfg(test)]
mod tests {
    use oncebox_sdk::testing::Host;

    use super::*;

    #[test]
    fn the_version_is_set_and_guards() {
        let changed = Event::test("member.level-changed", r#"{"userId": 7, "level": 3, "version": 12}"#);
        let run = Host::new().run::<PointsLevel>(&changed);
        assert_eq!(run.outcome, Ok(Done::applied()));
        let values = vec![Value::Signed(3), Value::Unsigned(12), Value::Unsigned(7), Value::Unsigned(12)];
        assert_eq!(run.staged, [("set-level".to_owned(), values)]);
    }
}
