// Before the page is drawn: the styles know whether scripts run.
document.documentElement.classList.add("js");
