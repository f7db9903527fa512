-- Blame: starts of deliveries that came again, and of claims. A start without an end, of a life that has crashed, makes
-- a suspect. A column of starts holds 24 bytes for each that has no end, the newest last, at most 16: the boot, and when
-- by its host's clock, in microseconds since 1970, big-endian.

CREATE TABLE ob_start (                                                -- a message that came again, until it is decided
  source TEXT NOT NULL, message_hash BLOB NOT NULL,                    -- as for poison: without the broker's own headers
  handler_id INTEGER NOT NULL,                                         -- 0: of the message, beside others; else this handler's run alone
  starts BLOB NOT NULL,
  times INTEGER NOT NULL DEFAULT 1,                                    -- how often it was begun
  expire_at INTEGER NOT NULL,                                          -- its queue may have lost the message meanwhile
  PRIMARY KEY (source, message_hash, handler_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX ob_start_expire ON ob_start (expire_at);

ALTER TABLE ob_held ADD COLUMN starts BLOB NOT NULL DEFAULT x'';       -- claims: beside others
ALTER TABLE ob_held ADD COLUMN starts_alone BLOB NOT NULL DEFAULT x''; -- and alone

ALTER TABLE ob_boot ADD COLUMN crashed INTEGER NOT NULL DEFAULT 0;     -- its end was written by the next life
