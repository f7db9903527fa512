-- Blame: starts of deliveries that came again, and of claims. A start without an end, of a life that has crashed, makes
-- a suspect. A column of starts holds 24 bytes for each that has no end, the newest last, at most 16: the boot, and when
-- by its host's clock, in microseconds since 1970, big-endian.
--
-- DDL commits by itself: a column that is there already (error 1060) was added before a kill, and is no error.

CREATE TABLE IF NOT EXISTS ob_start (                                  -- a message that came again, until it is decided
  source VARBINARY(64) NOT NULL, message_hash BINARY(32) NOT NULL,     -- as for poison: without the broker's own headers
  handler_id INT UNSIGNED NOT NULL,                                    -- 0: of the message, beside others; else this handler's run alone
  starts VARBINARY(384) NOT NULL,
  times INT UNSIGNED NOT NULL DEFAULT 1,                               -- how often it was begun
  expire_at DATETIME(6) NOT NULL,                                      -- its queue may have lost the message meanwhile
  PRIMARY KEY (source, message_hash, handler_id),
  KEY expire (expire_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

ALTER TABLE ob_held                                                    -- claims: beside others, and alone
  ADD COLUMN starts VARBINARY(384) NOT NULL DEFAULT '',
  ADD COLUMN starts_alone VARBINARY(384) NOT NULL DEFAULT '';
