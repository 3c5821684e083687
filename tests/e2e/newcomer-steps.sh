# The steps of newcomer.sh: an action each. Places are those of a window of 1600 x 1000.

say "select the last product, lm_head: the widest blocks of the second stage are its"
click 1054 244
shot select

say "try it on one device: drag it to the shelf, and look at the numbers at the pointer"
drag 1054 244 640 360 ghost

say "they are worse: Escape, and nothing has happened"
xdotool key Escape
sleep 0.5
xdotool mouseup 1
sleep 1
shot escape

say "open the chip of its rows, b 256, in the inspector"
click 1320 99
shot chip

say "go over \"split over tp\": the ghost says what the step would be"
xdotool mousemove $(at 1390 300)
sleep 0.3
xdotool mousemove $(at 1395 317)
sleep 2
shot choice

say "choose it"
xdotool click 1
sleep 3
shot improved
