//! Leaves a notice for a user who was granted a coupon. Its key is its own: what others did with the coupon's event
//! does not count here.
#![forbid(unsafe_code)]

use oncebox_sdk::prelude::*;
use serde::Deserialize;

oncebox_sdk::manifest!();

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CouponGranted {
    coupon_id: String,
    user_id: u64,
    title: String,
}

struct CouponNotice;

impl Handler for CouponNotice {
    fn handle(event: &Event) -> Result<Done, Failure> {
        let CouponGranted { coupon_id, user_id, title } = event.json()?;
        db::add_notice(&coupon_id, user_id, format!("You have a new coupon: {title}"));
        Ok(Done::applied())
    }
}

oncebox_sdk::export!(CouponNotice);

#[cfg(test)]
mod tests {
    use oncebox_sdk::testing::Host;

    use super::*;

    #[test]
    fn a_granted_coupon_leaves_one_notice() {
        let granted = Event::test("coupon.granted", r#"{"couponId": "c-1", "userId": 7, "title": "Tea for two"}"#);
        let run = Host::new().run::<CouponNotice>(&granted);
        assert_eq!(run.outcome, Ok(Done::applied()));
        let text = |value: &str| Value::Text(value.to_owned());
        let values = vec![text("c-1"), Value::Unsigned(7), text("You have a new coupon: Tea for two")];
        assert_eq!(run.staged, [("add-notice".to_owned(), values)]);
    }
}
