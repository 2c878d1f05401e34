-- A journal of 0.1.0-dev; its file head was: 00000000000000000014 c57b319c7fa34ebcb11e0abfa56be96c5a5b086efeec4e4053004a9e4a7c4a4b
CREATE TABLE arguments (
  call INTEGER PRIMARY KEY REFERENCES calls (id),
  text TEXT NOT NULL
);
INSERT INTO "arguments" VALUES(1,'{"command":"ls"}');
INSERT INTO "arguments" VALUES(2,'{"command":"git push"}');
INSERT INTO "arguments" VALUES(3,'{"command":"rm -rf /"}');
INSERT INTO "arguments" VALUES(4,'{"command":"cat x"}');
INSERT INTO "arguments" VALUES(5,'{"command":"make"}');
INSERT INTO "arguments" VALUES(6,'{"command":"make"}');
CREATE TABLE calls (
  id                 INTEGER PRIMARY KEY AUTOINCREMENT,
  client             TEXT NOT NULL,
  tool_call_id       TEXT NOT NULL,
  agent_id           TEXT NOT NULL,
  conversation_id    TEXT NOT NULL,
  run_id             TEXT NOT NULL,
  step_id            TEXT NOT NULL,
  otid               TEXT NOT NULL,
  request_message_id TEXT NOT NULL,
  dialect            TEXT NOT NULL,
  tool_name          TEXT NOT NULL,            -- as asked
  canonical_tool     TEXT NOT NULL DEFAULT '', -- empty: no such tool
  args_hash          TEXT NOT NULL,
  state              TEXT NOT NULL CHECK (state IN ('received', 'waiting', 'decided', 'running', 'returned', 'delivered')),
  decision_action    TEXT NOT NULL DEFAULT '',
  decision_by        TEXT NOT NULL DEFAULT '',
  decision_rule      TEXT NOT NULL DEFAULT '',
  decision_source    TEXT NOT NULL DEFAULT '',
  decision_reason    TEXT NOT NULL DEFAULT '',
  daemon             TEXT NOT NULL,            -- whose call it is: pid, start time, boot
  process            TEXT NOT NULL DEFAULT '', -- the same of the call's own process
  spool_dir          TEXT NOT NULL DEFAULT '',
  status             TEXT NOT NULL DEFAULT '',
  error_type         TEXT NOT NULL DEFAULT '',
  exit_code          INTEGER,
  signal             TEXT NOT NULL DEFAULT '',
  sandbox            TEXT NOT NULL DEFAULT '',
  return_seq         INTEGER REFERENCES messages (seq),
  received_at        INTEGER NOT NULL,
  decided_at         INTEGER,
  intended_at        INTEGER,                  -- set: it may have run, and must not run again
  started_at         INTEGER,
  returned_at        INTEGER,
  delivered_at       INTEGER, background_of TEXT NOT NULL DEFAULT '', decision_person TEXT NOT NULL DEFAULT '', decision_widened TEXT NOT NULL DEFAULT '', group_id TEXT NOT NULL DEFAULT '', sender_id TEXT NOT NULL DEFAULT '', workspace TEXT NOT NULL DEFAULT '',
  UNIQUE (client, agent_id, tool_call_id)
);
INSERT INTO "calls" VALUES(1,'agent','allowed','','','','','','','','bash','','h-allowed','delivered','allow','policy','presets','','','22676 3924120 9618a3bc-0c72-4050-8cb7-8adb276e9b43/pid:[4026531836]','1 2 x','/spool/1','success','',NULL,'','',2,1795418299704103114,1795418299704103114,1795418299704103114,1795418299718074293,1795418299718654870,1795418299719084532,'','','','','','');
INSERT INTO "calls" VALUES(2,'agent','asked','','','','','','','','bash','','h-asked','returned','allow','person','push','','','22676 3924120 9618a3bc-0c72-4050-8cb7-8adb276e9b43/pid:[4026531836]','','','error','',NULL,'','',4,1795418299719103961,1795418299720428508,1795418299720428508,NULL,1795418299725740649,NULL,'','bob','','','','');
INSERT INTO "calls" VALUES(3,'agent','denied','','','','','','','','bash','','h-denied','returned','deny','policy','rm','','','22676 3924120 9618a3bc-0c72-4050-8cb7-8adb276e9b43/pid:[4026531836]','','','error','denied',NULL,'','',6,1795418299725989851,1795418299725989851,NULL,NULL,1795418299725989851,NULL,'','','','','','');
INSERT INTO "calls" VALUES(4,'agent','read','','','','','','','','bash','','h-read','returned','allow','','','','','22676 3924120 9618a3bc-0c72-4050-8cb7-8adb276e9b43/pid:[4026531836]','','','success','',NULL,'','',8,1795418299726626101,1795418299726626101,1795418299726626101,NULL,1795418299726626101,NULL,'','','','','','');
INSERT INTO "calls" VALUES(5,'agent','runs','a-1','','','','','','','bash','','h','running','allow','person','','','','22676 3924120 9618a3bc-0c72-4050-8cb7-8adb276e9b43/pid:[4026531836]','','','','',NULL,'','',NULL,1795418299740970418,1795418299746123782,1795418299746123782,NULL,NULL,NULL,'','ann','','g','','/src/app');
INSERT INTO "calls" VALUES(6,'agent','waits','a-1','','','','','','','bash','','h','waiting','ask','policy','','','','22676 3924120 9618a3bc-0c72-4050-8cb7-8adb276e9b43/pid:[4026531836]','','','','',NULL,'','',NULL,1795418299748073874,1795418299748950713,NULL,NULL,NULL,NULL,'','','','g','','/src/app');
CREATE TABLE fences (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  client       TEXT NOT NULL,
  tool_call_id TEXT NOT NULL,
  UNIQUE (client, tool_call_id)
);
INSERT INTO "fences" VALUES(1,'agent','cancelled');
CREATE TABLE messages (
  seq             INTEGER PRIMARY KEY AUTOINCREMENT,
  id              TEXT NOT NULL UNIQUE,
  ts              INTEGER NOT NULL,
  message_type    TEXT NOT NULL,
  direction       TEXT NOT NULL CHECK (direction IN ('in', 'out')),
  client          TEXT NOT NULL,
  agent_id        TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  run_id          TEXT NOT NULL,
  step_id         TEXT NOT NULL,
  otid            TEXT NOT NULL,
  tool_call_id    TEXT NOT NULL,
  status          TEXT NOT NULL,
  body            TEXT NOT NULL,
  prev_hash       BLOB NOT NULL,
  hash            BLOB NOT NULL
, group_id TEXT NOT NULL DEFAULT '', sender_id TEXT NOT NULL DEFAULT '');
INSERT INTO "messages" VALUES(1,'message-01a20745-1d3c-75a0-8192-f671a5ef4854',1795418299704103114,'approval_request_message','in','agent','','','','','','allowed','','{"id":"message-01a20745-1d3c-75a0-8192-f671a5ef4854","seq_id":1,"date":"2026-11-23T07:18:19.704103114Z","message_type":"approval_request_message"}',X'',X'7BD2DA22CA77215E49445FE6C3145F0A46D7BE6B3CBEF537038D852FFFC7EA5B','','');
INSERT INTO "messages" VALUES(2,'message-out-2',1795418299718508321,'tool_return_message','out','agent','','','','','','allowed','success','{"message_type":"tool_return_message","seq_id":2,"result":"done"}',X'7BD2DA22CA77215E49445FE6C3145F0A46D7BE6B3CBEF537038D852FFFC7EA5B',X'B1ABAFF0200D1FA69ABE0AED52FA7899E0C90CC3B22D276474607F4C6273815A','','');
INSERT INTO "messages" VALUES(3,'message-01a20745-1d47-7ed0-8a0b-41e82cea40c3',1795418299719103961,'approval_request_message','in','agent','','','','','','asked','','{"id":"message-01a20745-1d47-7ed0-8a0b-41e82cea40c3","seq_id":3,"date":"2026-11-23T07:18:19.719103961Z","message_type":"approval_request_message"}',X'B1ABAFF0200D1FA69ABE0AED52FA7899E0C90CC3B22D276474607F4C6273815A',X'759B1F0D13EC0DF9A7DD8E18B55C64A55DB4DCD1510D3CA19830550826E79A89','','');
INSERT INTO "messages" VALUES(4,'message-out-4',1795418299725586339,'tool_return_message','out','agent','','','','','','asked','error','{"message_type":"tool_return_message","seq_id":4,"result":"done"}',X'759B1F0D13EC0DF9A7DD8E18B55C64A55DB4DCD1510D3CA19830550826E79A89',X'3F71A59FF00E40C559A90E73ACA05E69E4C37303929E3E23A0D3B5E6A40F2B1F','','');
INSERT INTO "messages" VALUES(5,'message-01a20745-1d4e-7172-912a-2a9ef8304ce2',1795418299725989851,'approval_request_message','in','agent','','','','','','denied','','{"id":"message-01a20745-1d4e-7172-912a-2a9ef8304ce2","seq_id":5,"date":"2026-11-23T07:18:19.725989851Z","message_type":"approval_request_message"}',X'3F71A59FF00E40C559A90E73ACA05E69E4C37303929E3E23A0D3B5E6A40F2B1F',X'9DEF08B7CC1F7A986A559622E749581537765EE7F730BAB549DF5145FC8B3C12','','');
INSERT INTO "messages" VALUES(6,'message-out-6',1795418299726065364,'tool_return_message','out','agent','','','','','','denied','error','{"message_type":"tool_return_message","seq_id":6,"result":"done"}',X'9DEF08B7CC1F7A986A559622E749581537765EE7F730BAB549DF5145FC8B3C12',X'77EC246615FAF57A21CCD14D13CE60E70A40EED51CE11FD2DD2E9A6B46E77389','','');
INSERT INTO "messages" VALUES(7,'message-01a20745-1d4e-75cc-96b0-d36228d95cbc',1795418299726626101,'approval_request_message','in','agent','','','','','','read','','{"id":"message-01a20745-1d4e-75cc-96b0-d36228d95cbc","seq_id":7,"date":"2026-11-23T07:18:19.726626101Z","message_type":"approval_request_message"}',X'77EC246615FAF57A21CCD14D13CE60E70A40EED51CE11FD2DD2E9A6B46E77389',X'F47E90762456DDAB07A08E051B894D7B9DF07F76048BCFDDAE241D5FA2823435','','');
INSERT INTO "messages" VALUES(8,'message-out-8',1795418299726708655,'tool_return_message','out','agent','','','','','','read','success','{"message_type":"tool_return_message","seq_id":8,"result":"done"}',X'F47E90762456DDAB07A08E051B894D7B9DF07F76048BCFDDAE241D5FA2823435',X'38D781A311F97BABA868BB4FA53B8B92530D879E153DA442924634C801199BA5','','');
INSERT INTO "messages" VALUES(9,'message-01a20745-1d5d-76c6-80ad-a937432c2f74',1795418299740970418,'approval_request_message','in','agent','a-1','','','','','runs','','{"id":"message-01a20745-1d5d-76c6-80ad-a937432c2f74","seq_id":9,"date":"2026-11-23T07:18:19.740970418Z","message_type":"approval_request_message","tool_call":{}}',X'38D781A311F97BABA868BB4FA53B8B92530D879E153DA442924634C801199BA5',X'87D20F9F81372F5B10EB2A8BBD9071E1B4568A0992D8220AE9D41EE84F45A8BA','g','');
INSERT INTO "messages" VALUES(10,'message-01a20745-1d61-7253-8e26-6ae8ddc4b896',1795418299744080271,'approval_response_message','in','agent','a-1','','','','','runs','','{"id":"message-01a20745-1d61-7253-8e26-6ae8ddc4b896","seq_id":10,"date":"2026-11-23T07:18:19.744080271Z","message_type":"approval_response_message","approve":true}',X'87D20F9F81372F5B10EB2A8BBD9071E1B4568A0992D8220AE9D41EE84F45A8BA',X'BD2C105E0FE61896C2F0C34E07A11A46A6FEC9B1FABE1E58C968BF9835D3A11E','','');
INSERT INTO "messages" VALUES(11,'message-01a20745-1d64-7c7d-b844-bf479ae70fc4',1795418299748073874,'approval_request_message','in','agent','a-1','','','','','waits','','{"id":"message-01a20745-1d64-7c7d-b844-bf479ae70fc4","seq_id":11,"date":"2026-11-23T07:18:19.748073874Z","message_type":"approval_request_message","tool_call":{}}',X'BD2C105E0FE61896C2F0C34E07A11A46A6FEC9B1FABE1E58C968BF9835D3A11E',X'74D679725037BB4D1D54F2EBCEC468617E46AE5489973F1F27084D60F846608D','g','');
CREATE TABLE seals (
  seq  INTEGER PRIMARY KEY,
  body TEXT NOT NULL,
  hash BLOB NOT NULL
);
INSERT INTO "seals" VALUES(1,'{"time":"2026-11-23T07:18:19.71362458Z","message":1,"link":"7bd2da22ca77215e49445fe6c3145f0a46d7be6b3cbef537038d852fffc7ea5b","calls":{"1":["29b3c926d8f00b5770e449d15793bfcc","615da891dbac7e884bbe505d2386bac5","cbafe76daeffdbc44fcad2b1e5741a74","c0c6641fe49af610ef5a4ef8491d661e"]},"arguments":{"1":"4cf29611a66934862f29acfcc817e30b"}}',X'7DD2BF9AD903327EA1E6C5B65E772BAB9C84A2168262321F9CCD1EBBAC105642');
INSERT INTO "seals" VALUES(2,'{"time":"2026-11-23T07:18:19.718853787Z","message":2,"link":"b1abaff0200d1fa69abe0aed52fa7899e0c90cc3b22d276474607f4c6273815a","calls":{"1":["29b3c926d8f00b5770e449d15793bfcc","615da891dbac7e884bbe505d2386bac5","67054b3e8c11af6538033bf0b9e88f3a","a18af70762254ebe2fbb035f8126b90a"]}}',X'5A9EE05347EBC9755EDE74973FD45D2E1105B7C0E28DC42A29334678C8D8CD2D');
INSERT INTO "seals" VALUES(3,'{"time":"2026-11-23T07:18:19.719267234Z","message":3,"link":"759b1f0d13ec0df9a7dd8e18b55c64a55db4dcd1510d3ca19830550826e79a89","calls":{"2":["5cfacc0b84d9bea05c24d7a9531cbeee","bc94311edd77dd20c78577268ff7d981","e4f36b142697d9dbf76d606844ba2068","c0c6641fe49af610ef5a4ef8491d661e"]},"arguments":{"2":"30b695dacdb9995167363f05ec1090c6"}}',X'4E69B1234A44835EFCE7F1AA99A0D187A496A28C767A5C2D9025FF8F33C9F450');
INSERT INTO "seals" VALUES(4,'{"time":"2026-11-23T07:18:19.719627703Z","message":3,"link":"759b1f0d13ec0df9a7dd8e18b55c64a55db4dcd1510d3ca19830550826e79a89","calls":{"2":["5cfacc0b84d9bea05c24d7a9531cbeee","bd7b72c8580279d6ef76f7b9adf40ade","9347d64a6dc18f08f4117d5a6702530e","c0c6641fe49af610ef5a4ef8491d661e"]}}',X'D56F9FEB536E8256E23400F033E9D76E9F52A887EA8B2F43C37DE975251EFD48');
INSERT INTO "seals" VALUES(5,'{"time":"2026-11-23T07:18:19.720884499Z","message":3,"link":"759b1f0d13ec0df9a7dd8e18b55c64a55db4dcd1510d3ca19830550826e79a89","calls":{"2":["5cfacc0b84d9bea05c24d7a9531cbeee","42e325e35b3dc71bb5a16ddee82a0d3b","d57daceab2d6b061cb4e41b6d4728aa2","c0c6641fe49af610ef5a4ef8491d661e"]}}',X'1F3E54B6832F3C6D1F29694B1E9C85AE31B5AB8FB015A8A3B991649BB8B571CD');
INSERT INTO "seals" VALUES(6,'{"time":"2026-11-23T07:18:19.725786227Z","message":4,"link":"3f71a59ff00e40c559a90e73aca05e69e4c37303929e3e23a0d3b5e6a40f2b1f","calls":{"2":["5cfacc0b84d9bea05c24d7a9531cbeee","42e325e35b3dc71bb5a16ddee82a0d3b","09e9f66d5830c14e4aea5d99fc00c570","d7251d87d1ae071aaa9d9922a362ebdf"]}}',X'F3B40E1D1E8CB22F907CFD3B1120ED6D7F65A0EF622559DE729BF0B2A9610033');
INSERT INTO "seals" VALUES(7,'{"time":"2026-11-23T07:18:19.726114688Z","message":6,"link":"77ec246615faf57a21ccd14d13ce60e70a40eed51ce11fd2dd2e9a6b46e77389","calls":{"3":["c1d337dc173b9e28d2d6a4a53e1848ef","c864dd2d76fa39bc0cc5200f968447df","ea43c64d4bd5493bfe994cba6ce52b41","3ab948c7333b6b6412913fe077a68c2b"]},"arguments":{"3":"2f3b94579f43fb59e8df8ecf8d8a231a"}}',X'AE484B9C17F805FBBFBFFCCF29D2F57CB06A540BB2EC0AD11524CDF75C3B941D');
INSERT INTO "seals" VALUES(8,'{"time":"2026-11-23T07:18:19.72671878Z","message":8,"link":"38d781a311f97baba868bb4fa53b8b92530d879e153da442924634c801199ba5","calls":{"4":["e6185cfe734ff792c50117a618a39b99","852faff050bc8cf89d178ff8feca5278","19f73c6d6e1e0bdd0c0a9491af4b7f85","5ddff60ce447f382f26324e356def394"]},"arguments":{"4":"18c22fe062dec884c32a295aa4b487be"}}',X'2091781B9708CF91ED6A9784AA0694C9FB43B1DF4ED1AC600A8C1EBB46BF11C8');
INSERT INTO "seals" VALUES(9,'{"time":"2026-11-23T07:18:19.727686044Z","message":8,"link":"38d781a311f97baba868bb4fa53b8b92530d879e153da442924634c801199ba5","calls":{"1":["29b3c926d8f00b5770e449d15793bfcc","615da891dbac7e884bbe505d2386bac5","c7b065cbbf50eeb0aeb4a86bd687f4b1","a18af70762254ebe2fbb035f8126b90a"]}}',X'8060B692BE16FE212EC7924528737830CB0613636FCD158BEA91EB2157EC3EB1');
INSERT INTO "seals" VALUES(10,'{"time":"2026-11-23T07:18:19.741464956Z","message":9,"link":"87d20f9f81372f5b10eb2a8bbd9071e1b4568a0992d8220ae9d41ee84f45a8ba","calls":{"5":["75853717f1023d21b8c327dad3043b6d","bc94311edd77dd20c78577268ff7d981","e4f36b142697d9dbf76d606844ba2068","c0c6641fe49af610ef5a4ef8491d661e"]},"arguments":{"5":"0feeb86e202d4881f7cf17e1c8b466cd"}}',X'8FD46B54333F0931B55AA8EC2E947985024BCDD163E35D913E9EBC1E23DCBF38');
INSERT INTO "seals" VALUES(11,'{"time":"2026-11-23T07:18:19.746037724Z","message":10,"link":"bd2c105e0fe61896c2f0c34e07a11a46a6fec9b1fabe1e58c968bf9835d3a11e"}',X'A714EF3E9B0A55F02B96952322EA6F7C01C805D0BB1BB076111421C9C5497B1A');
INSERT INTO "seals" VALUES(12,'{"time":"2026-11-23T07:18:19.747249403Z","message":10,"link":"bd2c105e0fe61896c2f0c34e07a11a46a6fec9b1fabe1e58c968bf9835d3a11e","calls":{"5":["75853717f1023d21b8c327dad3043b6d","77b4e55f184c00ddf4b220c0424a36e9","f77455b339e4ee61c281688ab5974e98","c0c6641fe49af610ef5a4ef8491d661e"]}}',X'477FFD7655C31FEBDBB6A4E801C9E441C9357DB5DD8C8C349F89470C22C6D4AD');
INSERT INTO "seals" VALUES(13,'{"time":"2026-11-23T07:18:19.748213863Z","message":11,"link":"74d679725037bb4d1d54f2ebcec468617e46ae5489973f1f27084d60f846608d","calls":{"6":["a53f9b8b4fef9fb9572894b8ba8ed69e","bc94311edd77dd20c78577268ff7d981","e4f36b142697d9dbf76d606844ba2068","c0c6641fe49af610ef5a4ef8491d661e"]},"arguments":{"6":"0feeb86e202d4881f7cf17e1c8b466cd"}}',X'2F777EB151B751B0B21BB111A744B8E198D48D066AD5339817423999DD3709BC');
INSERT INTO "seals" VALUES(14,'{"time":"2026-11-23T07:18:19.74908295Z","message":11,"link":"74d679725037bb4d1d54f2ebcec468617e46ae5489973f1f27084d60f846608d","calls":{"6":["a53f9b8b4fef9fb9572894b8ba8ed69e","e01acac388ef9cecfd836e4969347dea","9347d64a6dc18f08f4117d5a6702530e","c0c6641fe49af610ef5a4ef8491d661e"]}}',X'C57B319C7FA34EBCB11E0ABFA56BE96C5A5B086EFEEC4E4053004A9E4A7C4A4B');
CREATE INDEX calls_by_id ON calls (tool_call_id);
CREATE INDEX calls_open ON calls (daemon) WHERE return_seq IS NULL;
CREATE INDEX messages_by_agent ON messages (agent_id, seq) WHERE agent_id <> '';
CREATE INDEX messages_by_conversation ON messages (conversation_id, seq) WHERE conversation_id <> '';
CREATE INDEX messages_by_run ON messages (run_id, seq) WHERE run_id <> '';
CREATE INDEX messages_by_step ON messages (step_id, seq) WHERE step_id <> '';
CREATE INDEX messages_by_otid ON messages (otid, seq) WHERE otid <> '';
CREATE INDEX messages_by_call ON messages (tool_call_id, seq) WHERE tool_call_id <> '';
CREATE INDEX calls_untold ON calls (client) WHERE background_of <> '' AND state = 'returned';
CREATE INDEX messages_by_group ON messages (group_id, seq) WHERE group_id <> '';
CREATE INDEX messages_by_sender ON messages (sender_id, seq) WHERE sender_id <> '';
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('calls',6);
INSERT INTO "sqlite_sequence" VALUES('messages',11);
INSERT INTO "sqlite_sequence" VALUES('fences',1);

PRAGMA user_version = 7;
