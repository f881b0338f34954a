"""What Turngate is held to. Folders mirror the source tree; `broker`, `registry` and `jvm` start the real parts."""
