//! Makes a campaign known: an order that came before it waits in the host's table until then.
#![forbid(unsafe_code)]

use oncebox_sdk::prelude::*;
use serde::Deserialize;

oncebox_sdk::manifest!();

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CampaignOpened {
    campaign_id: String,
    title: String,
    face_cents: i64,
}

struct CampaignOpen;

impl Handler for CampaignOpen {
    fn handle(event: &Event) -> Result<Done, Failure> {
        let CampaignOpened { campaign_id, title, face_cents } = event.json()?;
        if face_cents <= 0 {
            return Err(Failure::reject("bad-face-value", format!("a coupon of {face_cents} cents is worth nothing")));
        }
        db::open(&campaign_id, &title, face_cents);
        Ok(Done::applied())
    }
}

oncebox_sdk::export!(CampaignOpen);

#[cfg(test)]
mod tests {
    use oncebox_sdk::testing::Host;

    use super::*;

    fn opened(face_cents: i64) -> Event {
        let payload = format!(r#"{{"campaignId": "C-10", "title": "Cake for one", "faceCents": {face_cents}}}"#);
        Event::test("campaign.opened", &payload)
    }

    #[test]
    fn a_campaign_is_written_once_known() {
        let run = Host::new().run::<CampaignOpen>(&opened(800));
        assert_eq!(run.outcome, Ok(Done::applied()));
        let text = |value: &str| Value::Text(value.to_owned());
        let row = vec![text("C-10"), text("Cake for one"), Value::Signed(800)];
        assert_eq!(run.staged, [("open".to_owned(), row)]);
    }

    #[test]
    fn a_coupon_worth_nothing_is_refused_for_good() {
        let run = Host::new().run::<CampaignOpen>(&opened(0));
        let Err(Failure::Reject(rejection)) = run.outcome else { panic!("a coupon of 0 cents was taken") };
        assert_eq!((rejection.code.as_str(), run.staged.len()), ("bad-face-value", 0));
    }
}
