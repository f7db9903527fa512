-- Order of events with the same ordering key, and what a fleet of hosts tells each other.

CREATE TABLE ob_order (                                                -- the lock row of an ordering key: made by the first unit that uses it
  handler_id INTEGER NOT NULL, ordering_key BLOB NOT NULL,
  held INTEGER NOT NULL DEFAULT 0,                                     -- parked or blocking dead rows of the key
  next_place INTEGER NOT NULL DEFAULT 0,                               -- of the next held row of the key
  used_at INTEGER NOT NULL,
  PRIMARY KEY (handler_id, ordering_key)
) STRICT, WITHOUT ROWID;

ALTER TABLE ob_held ADD COLUMN ordering_key BLOB;
ALTER TABLE ob_held ADD COLUMN place INTEGER;                          -- arrival order inside the ordering key, written under ob_order's lock
CREATE INDEX ob_held_by_order ON ob_held (handler_id, ordering_key, place);

ALTER TABLE ob_handler ADD COLUMN mode INTEGER NOT NULL DEFAULT 0;     -- running, probing, paused, blocked
ALTER TABLE ob_handler ADD COLUMN mode_reason TEXT;
ALTER TABLE ob_handler ADD COLUMN mode_since INTEGER;

ALTER TABLE ob_boot ADD COLUMN seen_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ob_boot ADD COLUMN draining INTEGER NOT NULL DEFAULT 0;

CREATE TABLE ob_ready (                                                -- a live host's answer to a deployment
  deployment_id INTEGER NOT NULL, boot_id BLOB NOT NULL,
  ready INTEGER NOT NULL, message TEXT, at INTEGER NOT NULL,
  PRIMARY KEY (deployment_id, boot_id)
) STRICT, WITHOUT ROWID;
